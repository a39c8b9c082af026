"""Rows, paired tests and tables of a result, from records made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.result import Result, documents_table, write_files
from spscanner_rag.lab.evaluation.rows import differences_of, rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.tables import Table

SETTINGS = [Setting("scanner", "sentence"), Setting("bm25", "chunk")]


def record(
    setting: Setting, source: str, doc: str, qid: str, recall: float, characters: int = 5_000
) -> Record:
    return Record(
        *setting.key,
        source=source,
        split="dev",
        doc_id=doc,
        qid=qid,
        characters=characters,
        metrics={"recall@10": recall, "ndcg@10": recall / 2, "mrr": recall}
        | {f"recall_at_tokens@{budget}": recall for budget in (1000, 2000)},
        tokens={"10": 100},
        positions={"10": [recall, *[None] * 9]},
        seconds=2.0,
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


def value(metric: str, k: int | None, source: str, retriever: str = "scanner") -> float:
    found = [
        row["value"]
        for row in rows_of(RECORDS, SETTINGS)
        if (row["metric"], row["k"], row["source"], row["retriever"]) == (metric, k, source, retriever)
    ]
    assert len(found) == 1
    return found[0]


def test_means() -> None:
    assert value("recall", 10, "a") == pytest.approx(2 / 3)
    assert value("recall", 10, "b") == 0
    assert value("recall", 10, "macro") == pytest.approx(1 / 3)
    assert value("recall", 10, "micro") == pytest.approx(1 / 2)
    assert value("recall", 10, "micro", "bm25") == pytest.approx(1 / 4)
    assert value("mrr", None, "a") == pytest.approx(2 / 3)
    assert value("tokens", 10, "macro") == 100
    assert value("seconds", None, "macro") == 2
    assert value("recall_by_length", 0, "a") == pytest.approx(1 / 2)
    assert value("recall_by_length", 40_000, "a") == 1
    assert value("recall_by_position@10", 1, "a") == pytest.approx(2 / 3)


def test_rows_say_what_they_rest_on() -> None:
    for row in rows_of(RECORDS, SETTINGS):
        assert row["split"] == "dev"
        assert (
            row["ci_low"] is None or row["ci_high"] is None or row["ci_low"] <= row["value"] <= row["ci_high"]
        )
        if row["source"] == "a" and row["metric"] == "recall":
            assert (row["questions"], row["documents"]) == (3, 2)
    assert rows_of(RECORDS[::-1], SETTINGS) == rows_of(RECORDS, SETTINGS)


@pytest.mark.parametrize(
    ("unit", "metrics"),
    [("sentence", ["recall@10", "ndcg@10"]), ("chunk", ["recall_at_tokens@1000", "recall_at_tokens@2000"])],
)
def test_differences_on_the_questions_both_were_asked(unit: str, metrics: list[str]) -> None:
    other = Setting("bm25", unit)
    records = [*RECORDS[:4], *(replace(r, unit=unit) for r in RECORDS[4:-1])]
    found = differences_of(records, [(SETTINGS[0], other)])
    assert [(row["metric"], row["questions"]) for row in found] == [(metric, 3) for metric in metrics]
    assert found[0]["difference"] == pytest.approx(1 / 3)
    assert 0 < float(str(found[0]["p_value"])) <= 1
    (back, *_) = differences_of(records, [(other, SETTINGS[0])])
    assert (back["first"], back["difference"]) == (other.label, -found[0]["difference"])
    assert differences_of(RECORDS[:4], [(SETTINGS[0], SETTINGS[1])]) == []


def test_a_metric_without_a_value_counts_as_zero() -> None:
    without = Record(
        *SETTINGS[0].key, "a", "dev", "d1", "q9", 9, {"recall@10": 1.0}, {"10": 1}, {"10": [1.0] * 10}
    )
    means = {row["metric"]: row["value"] for row in rows_of([RECORDS[0], without], SETTINGS)}
    assert (means["recall"], means["mrr"]) == (1.0, 0.5)


def by_bin(records: list[Record], metric: str) -> dict[int | None, tuple[float, int]]:
    """Value and number of questions of a metric of source "a", by its k."""
    rows = (row for row in rows_of(records, SETTINGS) if (row["metric"], row["source"]) == (metric, "a"))
    return {row["k"]: (row["value"], row["questions"]) for row in rows}


def test_every_question_is_in_the_bin_of_its_length() -> None:
    lengths = [0, 9_999, 10_000, 19_999, 20_000, 10**6]
    records = [
        record(SETTINGS[0], "a", f"d{n}", f"q{n}", n / 10, characters) for n, characters in enumerate(lengths)
    ]
    assert by_bin(records, "recall_by_length") == {
        0: (pytest.approx(0.05), 2),
        10_000: (pytest.approx(0.25), 2),
        20_000: (pytest.approx(0.4), 1),
        160_000: (pytest.approx(0.5), 1),
    }


def test_a_question_counts_in_every_tenth_that_has_its_evidence() -> None:
    positions = {"d1": [0.5, None, None], "d2": [1.0, 0.0, None]}
    records = [
        replace(record(SETTINGS[0], "a", doc, "q", 0.0), positions={"10": own})
        for doc, own in positions.items()
    ]
    assert by_bin(records, "recall_by_position@10") == {1: (0.75, 2), 2: (0.0, 1)}


TABLE = Table("Further", "What it is.", ["one", "two"], [["a|b\n", "1.0"]])


def markdown(result: Result, out: Path) -> list[str]:
    write_files(result, out)
    return (out / "results.md").read_text(encoding="utf-8").splitlines()


def test_markdown(tmp_path: Path) -> None:
    differences = differences_of(RECORDS, [(SETTINGS[0], SETTINGS[1])])
    lines = markdown(Result(rows_of(RECORDS, SETTINGS), differences, SETTINGS, tables=[TABLE]), tmp_path)
    assert len({line.count(" | ") for line in lines if line.startswith("| ")}) == 4  # of the four tables
    assert any(line.startswith("| scanner | 33.3 (") for line in lines)
    assert any("scanner minus bm25, chunks | recall_at_tokens@1000 | +16.7 |" in line for line in lines)
    assert lines[-5:-1] == ["Further. What it is.", "", "| one | two |", "| --- | --- |"]
    assert lines[-1].startswith("| a\\|b")
    assert lines[-1].endswith(" | 1.0 |")


def recall_table(best: dict[str, float], out: Path) -> list[str]:
    """The recall table of sentences from two retrievers, whose best possible recalls are given."""
    settings = [Setting(name) for name in best]
    records = [
        replace(own, retriever=name, metrics=own.metrics | {"best_recall@10": most})
        for name, most in best.items()
        for own in RECORDS[:4]
    ]
    lines = markdown(Result(rows_of(records, settings), [], settings, cutoffs=[10]), out)
    return [line for line in lines if line.startswith(("Recall", "| source", "| macro"))]


def test_recall_has_the_most_that_is_possible_beside_it(tmp_path: Path) -> None:
    about, head, macro = recall_table({"scanner": 0.75, "bm25": 0.75}, tmp_path)
    assert about.endswith("Possible: the recall of the k units that hold most of the evidence.")
    assert head.endswith(" | scanner | bm25 | possible, sentences |")
    assert macro.endswith(" | 75.0 |")


def test_what_retrievers_of_other_documents_could_find_is_not_shown(tmp_path: Path) -> None:
    about, head, _ = recall_table({"scanner": 0.75, "bm25": 0.5}, tmp_path)
    assert about == "Recall in percent @ 10."
    assert head.endswith(" | scanner | bm25 |")


STAGED, INDEXED = Setting("scanner", variants=("2 documents by bm25",)), Setting("bm25")


def of_corpus(setting: Setting, source: str, doc: str, rank: int, recall: float) -> Record:
    metrics = {"recall@10": recall, "document_mrr": 1 / rank}
    metrics |= {f"document_recall@{k}": float(rank <= k) for k in (1, 5, 10)}
    return Record(
        *setting.key, source, "dev", doc, "q", 900, metrics, seconds=0.25, documents_read=2, tokens_read=1500
    )


OF_CORPORA = [
    of_corpus(STAGED, "a", "d1", 1, 1.0),
    of_corpus(STAGED, "a", "d2", 2, 0.5),
    of_corpus(STAGED, "b", "d3", 1, 0.0),
    of_corpus(INDEXED, "a", "d1", 4, 0.5),
    of_corpus(INDEXED, "a", "d2", 4, 0.5),
]


def test_the_table_of_documents() -> None:
    settings = [STAGED, INDEXED]
    table = documents_table(Result(rows_of(OF_CORPORA, settings), [], settings))
    cells = {tuple(line[:2]): line[2:] for line in table.body}
    assert cells["a", "scanner, 2 documents by bm25"] == [
        "75.0 (50.0 to 100.0)",
        *("50.0", "100.0", "100.0"),
        "75.0",
        *("2", "1,500", "0.25", "-"),
    ]
    assert cells["a", "bm25"][:4] == ["25.0 (25.0 to 25.0)", "0.0", "100.0", "100.0"]
    assert cells["macro", "scanner, 2 documents by bm25"][0].startswith("87.5 (")
    assert ("b", "bm25") not in cells
    assert [line[0] for line in table.body] == ["a", "a", "b", "macro", "macro", "micro", "micro"]
    assert {len(line) for line in table.body} == {len(table.head)}


def test_one_source_has_no_means() -> None:
    table = documents_table(Result(rows_of(OF_CORPORA[3:], [INDEXED]), [], [INDEXED]))
    assert [line[:2] for line in table.body] == [["a", "bm25"]]
