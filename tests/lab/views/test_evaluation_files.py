"""The files of a result, from handmade records."""

from pathlib import Path

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import differences_of, rows_of
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.views.evaluation_files import write_files
from tests.lab.evaluation.handmade_records import RECORDS, SETTINGS

TABLE = Table("Further", "What it is.", ["one", "two"], [["a|b\n", "1.0"]])


def markdown(result: EvaluationResult, out: Path) -> list[str]:
    write_files(result, out)
    return (out / "results.md").read_text(encoding="utf-8").splitlines()


def test_markdown(tmp_path: Path) -> None:
    differences = differences_of(RECORDS, [(SETTINGS[0], SETTINGS[1])])
    lines = markdown(
        EvaluationResult(
            rows_of(RECORDS, SETTINGS), differences, SETTINGS, tables=[TABLE]
        ),
        tmp_path,
    )
    assert (
        len({line.count(" | ") for line in lines if line.startswith("| ")}) == 3
    )  # in the three tables
    assert any(line.startswith("| macro | scanner | 33.3 (") for line in lines)
    assert any(
        "scanner minus bm25, chunks | recall_at_tokens@1000 | +16.7 |" in line
        for line in lines
    )
    assert lines[-5:-1] == [
        "Further. What it is.",
        "",
        "| one | two |",
        "| --- | --- |",
    ]
    assert lines[-1].startswith("| a\\|b")
    assert lines[-1].endswith(" | 1.0 |")
