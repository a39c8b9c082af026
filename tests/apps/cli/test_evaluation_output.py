"""What a result writes and shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_rag.apps.cli.evaluation_output import show_result
from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.result import Result, summary, verdicts
from spscanner_rag.lab.evaluation.rows import Difference, rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.tables import Table

SETTING = Setting("bm25", "sentence")
RECORDS = [
    Record(
        *SETTING.key,
        source,
        "dev",
        "d",
        "q",
        90,
        {"recall@1": 0.25, "mrr": 0.5},
        {"5": 9},
        {"10": [0.5] * 10},
    )
    for source in ("a", "b\x1b[31m")
]
TABLE = Table("A table", "About it.\x1b", ["source", "name", "number"], [["a", "[bold]x", "1.0"]])
RESULT = Result(rows_of(RECORDS, [SETTING]), [], [SETTING], [TABLE], {"further.json": {"threshold": 0.5}})


MORE = "{}: +20.0 points of the evidence among the best 10 (95 % interval"
UNTOLD = "one or two: 1,234 questions do not tell which finds more"


@pytest.mark.parametrize(
    ("difference", "low", "high", "p", "expected"),
    [
        (0.2, 0.1, 0.3, 0.01, MORE.format("one finds more than two")),
        (-0.2, -0.3, -0.1, 0.04, MORE.format("two finds more than one")),
        (0.2, -0.1, 0.5, 0.2, f"{UNTOLD} (95 % interval -10.0 to +50.0)."),
        (0.2, 0.1, 0.3, 0.5, f"{UNTOLD} (95 % interval +10.0 to +30.0)."),  # as of two documents
        (0.2, None, None, 1.0, f"{UNTOLD}."),
    ],
)
def test_verdict_in_words(
    difference: float, low: float | None, high: float | None, p: float, expected: str
) -> None:
    test = Difference(
        first="one", second="two", metric="recall@10", average="macro",
        difference=difference, ci_low=low, ci_high=high, p_value=p, questions=1234,
    )  # fmt: skip
    (said,) = verdicts(replace(RESULT, differences=[test]))
    assert said.startswith(expected)
    alone = rows_of(RECORDS[:1], [SETTING])
    assert {str(line[0]) for line in summary(Result(alone, [], [SETTING])).body} == {"a"}


def test_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show_result(RESULT, Path("out"))
    assert "25.0" in capsys.readouterr().out
