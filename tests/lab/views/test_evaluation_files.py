"""The files of a result, from handmade records."""

from pathlib import Path

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import differences_of, length_bin, rows_of
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.views.evaluation_files import write_files
from spscanner_rag.baselines.settings import Setting

SETTINGS = [Setting("scanner", "sentence"), Setting("bm25", "chunk")]


def record(
    setting: Setting,
    source: str,
    doc: str,
    qid: str,
    recall: float,
    characters: int = 5_000,
) -> Record:
    return Record(
        *setting.key,
        source=source,
        split="dev",
        doc_id=doc,
        qid=qid,
        characters=characters,
        metrics={
            "recall@10": recall,
            "ndcg@10": recall / 2,
            "mrr": recall,
            "tokens@10": 100,
            "seconds": 2.0,
        }
        | {f"recall_at_tokens@{budget}": recall for budget in (1000, 2000)}
        | {
            f"recall_by_length@{length_bin(characters)}": recall,
            "recall_by_position@10@1": recall,
        },
    )


RECORDS = [
    record(SETTINGS[0], "a", "d1", "q1", 1.0),
    record(SETTINGS[0], "a", "d1", "q2", 0.0),
    record(SETTINGS[0], "a", "d2", "q3", 1.0, 50_000),
    record(SETTINGS[0], "b", "d3", "q4", 0.0),
    record(SETTINGS[1], "a", "d1", "q1", 0.5),
    record(SETTINGS[1], "a", "d1", "q2", 0.0),
    record(SETTINGS[1], "a", "d2", "q3", 0.5),
    record(SETTINGS[1], "b", "d3", "q4", 0.0),
]


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
