"""Rows, paired tests and tables of a result, from handmade records."""

from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import (
    Result,
    Table,
    calibration_rows,
    calibration_tables,
    documents_table,
    shown,
    write_files,
)
from spscanner_lab.evaluation.statistics import differences_of, length_bin, rows_of
from spscanner_lab.evidence.calibration import bins_of, filled
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


def value(metric: str, k: int | None, source: str, retriever: str = "scanner") -> float:
    found = [
        row["value"]
        for row in rows_of(RECORDS, SETTINGS)
        if (row["metric"], row["k"], row["source"], row["retriever"])
        == (metric, k, source, retriever)
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
            row["ci_low"] is None
            or row["ci_high"] is None
            or row["ci_low"] <= row["value"] <= row["ci_high"]
        )
        if row["source"] == "a" and row["metric"] == "recall":
            assert (row["questions"], row["documents"]) == (3, 2)
    assert rows_of(RECORDS[::-1], SETTINGS) == rows_of(RECORDS, SETTINGS)


@pytest.mark.parametrize(
    ("unit", "metrics"),
    [
        ("sentence", ["recall@10", "ndcg@10"]),
        ("chunk", ["recall_at_tokens@1000", "recall_at_tokens@2000"]),
    ],
)
def test_differences_on_the_questions_both_were_asked(
    unit: str, metrics: list[str]
) -> None:
    other = Setting("bm25", unit)
    records = [*RECORDS[:4], *(replace(r, unit=unit) for r in RECORDS[4:-1])]
    found = differences_of(records, [(SETTINGS[0], other)])
    assert [(row["metric"], row["questions"]) for row in found] == [
        (metric, 3) for metric in metrics
    ]
    assert found[0]["difference"] == pytest.approx(1 / 3)
    assert 0 < float(str(found[0]["p_value"])) <= 1
    back, *_ = differences_of(records, [(other, SETTINGS[0])])
    assert (back["first"], back["difference"]) == (other.label, -found[0]["difference"])
    assert differences_of(RECORDS[:4], [(SETTINGS[0], SETTINGS[1])]) == []


def test_a_metric_counts_where_it_was_measured() -> None:
    partly = replace(
        RECORDS[2], metrics={"recall@10": 0.0, "recall_by_position@10@2": 0.5}
    )
    for records in ([*RECORDS[:2], partly], [partly, *RECORDS[1::-1]]):
        rows = {
            (r["metric"], r["k"]): r
            for r in rows_of(records, SETTINGS)
            if r["source"] == "a"
        }
        found = {key: (row["value"], row["questions"]) for key, row in rows.items()}
        assert found["recall", 10] == (pytest.approx(1 / 3), 3)
        assert found["mrr", None] == found["recall_by_position@10", 1] == (0.5, 2)
        assert found["recall_by_position@10", 2] == (0.5, 1)


@pytest.mark.parametrize(
    ("characters", "edge"),
    [
        (0, 0),
        (9_999, 0),
        (10_000, 10_000),
        (19_999, 10_000),
        (20_000, 20_000),
        (10**6, 160_000),
    ],
)
def test_every_question_is_in_the_bin_of_its_length(characters: int, edge: int) -> None:
    assert length_bin(characters) == edge


TABLE = Table("Further", "What it is.", ["one", "two"], [["a|b\n", "1.0"]])


def markdown(result: Result, out: Path) -> list[str]:
    write_files(result, out)
    return (out / "results.md").read_text(encoding="utf-8").splitlines()


def test_markdown(tmp_path: Path) -> None:
    differences = differences_of(RECORDS, [(SETTINGS[0], SETTINGS[1])])
    lines = markdown(
        Result(rows_of(RECORDS, SETTINGS), differences, SETTINGS, tables=[TABLE]),
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


STAGED, INDEXED = Setting("scanner", variants=("2 documents by bm25",)), Setting("bm25")


def of_corpus(
    setting: Setting, source: str, doc: str, rank: int, recall: float
) -> Record:
    metrics = {"recall@10": recall, "document_mrr": 1 / rank}
    metrics |= {f"document_recall@{k}": float(rank <= k) for k in (1, 5, 10)}
    metrics |= {"seconds": 0.25, "documents_read": 2, "tokens_read": 1500}
    return Record(*setting.key, source, "dev", doc, "q", 900, metrics)


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
    assert (
        table.head
        == "source retriever MRR @1 @5 @10 evidence@10 documents tokens seconds".split()
    )
    body = [[shown(cell) for cell in cells] for cells in table.body]
    cells = {tuple(line[:2]): line[2:] for line in body}
    staged, costs = cells["a", "scanner, 2 documents by bm25"], ["2", "1,500", "0.25"]
    assert staged[0] == "75.0 (50.0 to 100.0)"
    assert staged[-4:] == ["75.0 (50.0 to 100.0)", *costs]
    assert cells["a", "bm25"][0] == "25.0 (25.0 to 25.0)"
    assert cells["macro", "scanner, 2 documents by bm25"][0].startswith("87.5 (")
    assert [line[0] for line in body] == [
        "a",
        "a",
        "b",
        "macro",
        "macro",
        "micro",
        "micro",
    ], "not b of bm25"
    assert {len(line) for line in body} == {len(table.head)}
    assert {(0, 2), (0, 3), (0, 4), (1, 4)} < set(table.best), (
        "the best of a source and unit"
    )
    assert not {(1, 2), (0, 7), (0, 9)} & set(table.best)


def test_one_source_has_no_means() -> None:
    table = documents_table(Result(rows_of(OF_CORPORA[3:], [INDEXED]), [], [INDEXED]))
    assert [line[0] for line in table.body] == ["bm25"]


# Calibration

SCANNER = Setting("scanner", "sentence")


def probable(
    source: str, doc: str, qid: str, p: list[float], relevant: list[bool] | None
) -> Record:
    """For a question on a document whose sentences have these probabilities.

    None if it does not answer.
    """
    bins = None if relevant is None else filled(bins_of(p, relevant))
    own = {"answerable": relevant is not None, "highest": max(p), "bins": bins}
    return Record(*SCANNER.key, source, "dev", doc, qid, 90, {}, **own)  # type: ignore[arg-type]


PROBABLE = [
    probable("a", "d1", "q1", [0.02, 0.9], [False, True]),
    probable("a", "d2", "q2", [0.02, 0.5], [False, True]),
    probable("a", "d2", "q3", [0.02, 0.3], [False, True]),
    probable("a", "d1", "n1", [0.02, 0.6], None),
    probable("a", "d2", "n2", [0.02, 0.1], None),
    probable("b", "d3", "q4", [0.02, 0.03], [False, False]),
]
CALIBRATED = {row["source"]: row for row in calibration_rows(PROBABLE, [SCANNER])}


def test_calibration_error() -> None:
    error = (
        3 * 0.02 + 0.1 + 0.5 + 0.7
    ) / 6  # every relevant sentence is in a different bin
    assert CALIBRATED["a"]["calibration_error"] == pytest.approx(error)
    assert CALIBRATED["b"]["calibration_error"] == pytest.approx(0.025)
    assert CALIBRATED["macro"]["calibration_error"] == pytest.approx(
        (error + 0.025) / 2
    )
    pooled = (4 * 0.02 + 0.03 + 0.1 + 0.5 + 0.7) / 8
    assert CALIBRATED["micro"]["calibration_error"] == pytest.approx(pooled)
    assert {source: row["sentences"] for source, row in CALIBRATED.items()} == {
        "a": 6,
        "b": 2,
        "macro": 8,
        "micro": 8,
    }


def test_rates_at_the_threshold() -> None:
    hits, alarms = CALIBRATED["a"]["hit_rate"], CALIBRATED["a"]["false_alarm_rate"]
    assert hits is not None
    assert alarms is not None
    assert (hits["value"], hits["questions"]) == (
        pytest.approx(2 / 3),
        3,
    )  # exactly one half counts
    assert (alarms["value"], alarms["questions"]) == (0.5, 2)
    assert alarms["ci_low"] == 0
    assert alarms["ci_high"] == 1
    own = CALIBRATED["b"]["hit_rate"]
    assert own is not None
    assert own["value"] == 0
    assert CALIBRATED["b"]["false_alarm_rate"] is CALIBRATED["b"]["auroc"] is None
    for average in ("macro", "micro"):  # over sources with both kinds of questions
        assert CALIBRATED[average]["hit_rate"] == hits
        assert CALIBRATED[average]["false_alarm_rate"] == alarms


def test_auroc() -> None:
    assert CALIBRATED["a"]["auroc"] == pytest.approx(
        4 / 6
    )  # 0.9, 0.5, 0.3 against 0.6, 0.1
    more = [*PROBABLE, probable("b", "d3", "n3", [0.95], None)]
    rows = {row["source"]: row for row in calibration_rows(more, [SCANNER])}
    assert rows["b"]["auroc"] == 0
    assert rows["macro"]["auroc"] == pytest.approx(2 / 6)
    assert rows["micro"]["auroc"] == pytest.approx(
        4 / 12
    )  # all questions of both sources together


def test_only_unanswerable_questions() -> None:
    rows = calibration_rows(PROBABLE[3:5], [SCANNER])
    for row in rows:
        assert row["calibration_error"] is row["hit_rate"] is row["auroc"] is None
        assert row["false_alarm_rate"] is not None
        assert row["false_alarm_rate"]["value"] == 0.5


def test_tables() -> None:
    rates, bins = calibration_tables(list(CALIBRATED.values()), ["bm25, chunks"])
    assert "15 bins" in rates.about
    assert rates.about.endswith("not probabilities: bm25, chunks.")
    cells = {line[0]: line for line in rates.body}
    assert cells["a"][1:4] == ["scanner", "6", "22.67"]
    assert cells["a"][5:] == ["50.0 (0.0 to 100.0) of 2", "66.7"]
    assert cells["b"][4:] == ["0.0 of 1", "-", "-"]
    assert len(bins.body) == 15
    assert bins.body[0] == ["0 to 7", "scanner", "2.2", "0.0", "5"]
    assert bins.body[1] == ["7 to 13", "scanner", "-", "-", "0"]
    assert bins.body[13] == ["87 to 93", "scanner", "90.0", "100.0", "1"]
    assert "Left out" not in calibration_tables(list(CALIBRATED.values()), [])[0].about
