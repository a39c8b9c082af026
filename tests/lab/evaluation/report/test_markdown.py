from dataclasses import replace

import pytest

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.report.markdown import to_markdown
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rows import differences_of, rows_of
from spscanner_rag.lab.evaluation.report.tables import Table
from spscanner_rag.lab.evaluation.settings import Setting

SCANNER, CHUNKS = SETTINGS = [Setting("scanner"), Setting("bm25", "chunk")]
RECALLS = {  # of the scanner and of the chunks
    ("a", "d1", "q1"): (1.0, 0.5),
    ("a", "d1", "q2"): (0.0, 0.0),
    ("a", "d2", "q3"): (1.0, 0.5),
    ("b", "d3", "q4"): (0.0, 0.0),
}
RECORDS = [
    Record(
        *setting.key,
        source=source,
        split="dev",
        doc_id=doc,
        qid=qid,
        characters=5_000,
        metrics=dict.fromkeys(("recall@10", "recall_at_tokens@1000", "recall_at_tokens@2000"), recall),
        tokens={"10": 100},
        positions={"10": [recall] * 10},
    )
    for (source, doc, qid), both in RECALLS.items()
    for setting, recall in zip(SETTINGS, both, strict=True)
]
ROWS = rows_of(RECORDS, SETTINGS)


def test_tables_of_a_result() -> None:
    result = Result(ROWS, differences_of(RECORDS, [(SCANNER, CHUNKS)]), SETTINGS)
    lines = to_markdown(result).splitlines()
    widths = {line.count(" | ") for line in lines if line.startswith("| ")}
    assert len(widths) == 3  # of the three tables
    assert any(line.startswith("| scanner | 33.3 (") for line in lines)
    assert any("scanner minus bm25, chunks | recall_at_tokens@1000 | +16.7 |" in line for line in lines)


def recall_table(best: dict[str, float | None]) -> list[str]:
    """The recall table of sentences from two retrievers, whose best possible recalls are given."""
    settings = [Setting(name) for name in best]
    records = [
        replace(
            record,
            retriever=name,
            unit="sentence",
            metrics=record.metrics | ({"best_recall@10": most} if most else {}),
        )
        for name, most in best.items()
        for record in RECORDS[::2]
    ]
    lines = to_markdown(Result(rows_of(records, settings), [], settings, cutoffs=[10])).splitlines()
    return [line for line in lines if line.startswith(("Recall", "| source", "| macro"))]


def test_recall_has_the_most_that_is_possible_beside_it() -> None:
    about, head, macro = recall_table({"scanner": 0.75, "bm25": 0.75})
    assert about.endswith("Possible: the recall of the k units that hold most of the evidence.")
    assert head.endswith(" | scanner | bm25 | possible, sentences |")
    assert macro.endswith(" | 75.0 |")


@pytest.mark.parametrize("other", [0.5, None])
def test_what_retrievers_of_other_documents_or_versions_could_find_is_not_shown(other: float | None) -> None:
    about, head, _ = recall_table({"scanner": 0.75, "bm25": other})
    assert about == "Recall in percent @ 10."
    assert head.endswith(" | scanner | bm25 |")


def test_a_further_table() -> None:
    table = Table("Further", "What it is.", ["one", "two"], [["a|b\n", "1.0"]])
    lines = to_markdown(Result(ROWS, [], SETTINGS, tables=[table])).splitlines()
    assert lines[-5:] == ["Further. What it is.", "", "| one | two |", "| --- | --- |", lines[-1]]
    assert lines[-1].startswith("| a\\|b")
    assert lines[-1].endswith(" | 1.0 |")
