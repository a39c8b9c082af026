"""Rows and table of the rotation, from records made by hand."""

import pytest

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.report.rotation_table import rotation_rows, rotation_table
from spscanner_rag.lab.evaluation.report.rows import rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked

SETTING = Setting("bm25", "chunk")
FIRST, LAST = SETTING.varied("first tenth"), SETTING.varied("last tenth")
RECALLS = {  # of the first and the last tenth
    ("a", "d1", "q1"): (1.0, 1.0),
    ("a", "d2", "q2"): (1.0, 0.5),
    ("b", "d3", "q3"): (0.5, 0.25),
    ("c", "d4", "q4"): (0.0, 1.0),
}


def record(setting: Setting, source: str, doc: str, qid: str, recall: float) -> Record:
    return Record(
        *setting.key, source, "dev", doc, qid, 900, {"recall@10": recall}, {"10": 9}, {"10": [recall] * 10}
    )


RECORDS = [
    record(setting, *key, recall)
    for key, both in RECALLS.items()
    for setting, recall in zip((FIRST, LAST), both, strict=True)
]


def asked(*more: tuple[str, str, str]) -> dict[str, list[Asked]]:
    found: dict[str, list[Asked]] = {}
    for source, doc, qid in [*RECALLS, *more]:
        pair = Document(doc, source, "", "text", (), "dev"), Question(qid, "?", ((0, 1),))
        found.setdefault(source, []).append(pair)
    return found


ROWS = rotation_rows(RECORDS, [SETTING], asked(("a", "d1", "q9"), ("e", "d5", "q5")), asked())


def test_ratios() -> None:
    ratios = {row["source"]: row for row in ROWS if row["metric"] == "recall_last_over_first"}
    assert list(ratios) == ["a", "b", "macro", "micro"]  # the recall of c in the first tenth is 0
    assert ratios["a"]["value"] == 0.75
    assert ratios["b"]["value"] == 0.5
    assert ratios["macro"]["value"] == pytest.approx((0.75 + 0.25 + 1) / (1 + 0.5))
    assert ratios["micro"]["value"] == pytest.approx(2.75 / 2.5)
    assert ratios["a"]["ci_low"] == 0.5
    assert ratios["a"]["ci_high"] == 1
    assert {row["k"] for row in ratios.values()} == {10}
    assert {(row["retriever"], row["unit"], row["split"]) for row in ROWS} == {("bm25", "chunk", "dev")}
    assert (ratios["macro"]["questions"], ratios["macro"]["documents"]) == (4, 4)


def test_what_is_left_out() -> None:
    left_out = {row["source"]: row for row in ROWS if row["metric"] == "left_out"}
    assert {source: row["value"] for source, row in left_out.items()} == {
        "a": pytest.approx(1 / 3),
        "b": 0,
        "c": 0,
        "e": 1,
        "micro": pytest.approx(2 / 6),
    }
    assert (left_out["a"]["questions"], left_out["a"]["documents"]) == (3, 2)


def test_table() -> None:
    rows = rows_of(RECORDS, [FIRST, LAST])
    table = rotation_table([*rows, *ROWS], [SETTING])
    cells = {line[0]: line[1:] for line in table.body}
    assert cells["a"] == ["bm25, chunks", "2 (1)", "100.0", "75.0", "75.0 (50.0 to 100.0)"]
    assert cells["c"][2:] == ["0.0", "100.0", "-"]
    assert cells["e"] == ["bm25, chunks", "0 (1)", "-", "-", "-"]
    assert cells["macro"][1] == "4 (2)"
    assert list(cells) == ["a", "b", "c", "e", "macro", "micro"]
    assert {len(line) for line in table.body} == {len(table.head)}


def test_without_records() -> None:
    assert {row["metric"] for row in rotation_rows([], [SETTING], asked(), asked())} == {"left_out"}
