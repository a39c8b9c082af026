"""Reports of measurements: medians, what is left out, and the printed table."""

import math

import pytest
import torch

from spscanner_lab.benchmarks import report
from spscanner_lab.benchmarks.report import (
    describe_run,
    median_seconds,
    print_report,
    seconds_of,
    too_long,
)

CPU = torch.device("cpu")


def test_calls_alternate_and_the_median_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    ticks = iter([0, 1, 0, 5, 0, 9, 0, 5, 0, 2, 0, 5])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    runs = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    assert median_seconds(runs, 3, CPU) == {"a": 2, "b": 5}
    assert calls == ["a", "b"] * 3


def test_what_has_run_long_enough_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "LONG_ENOUGH", -1.0)
    calls: list[int] = []
    median_seconds({"a": lambda: calls.append(1)}, 50, CPU)
    assert len(calls) == 1


def test_a_call_is_timed_until_it_has_returned() -> None:
    values: list[int] = []
    assert seconds_of(lambda: values.append(1), CPU) >= 0
    assert values == [1]


def test_what_takes_too_long_is_a_row_that_says_so() -> None:
    assert too_long(1234.5) == "not measured: would take about 1,234 s"


def test_a_run_is_described_without_a_path() -> None:
    described = describe_run(["house", "--out", "my report.json"])
    assert described["command"] == (
        "python -m spscanner_lab.benchmarks house --out 'my report.json'"
    )
    versions = described["versions"]
    assert isinstance(versions, dict)
    assert versions["torch"] == torch.__version__


@pytest.mark.parametrize(("ok", "end"), [(True, "within bounds"), (False, "OUT OF")])
def test_rows_with_the_same_columns_share_a_header(
    ok: bool, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        "first": {"ms": 1234.56, "times": 1.0},
        "second": {"ms": 0.012345, "times": math.nan},
        "third": "not measured: no time left",
    }
    print_report(describe_run(["speed"]) | {"ok": ok, "results": rows})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "python -m spscanner_lab.benchmarks speed"
    assert [line for line in lines if line.split() == ["ms", "times"]] == [lines[3]]
    assert lines[4].split() == ["first", "1,234.6", "1"]
    assert lines[5].split() == ["second", "0.01235", "nan"]
    assert lines[6].split(maxsplit=1) == ["third", "not measured: no time left"]
    assert lines[7].startswith(end)


def test_a_package_that_is_missing_has_no_version() -> None:
    assert report._version("no-such-package-anywhere") == "not installed"
