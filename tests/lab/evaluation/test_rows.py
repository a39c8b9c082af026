"""Rows and paired tests, from handmade records."""

from dataclasses import replace

import pytest

from spscanner_lab.evaluation.rows import (
    differences_of,
    length_bin,
    length_name,
    rows_of,
)
from spscanner_rag.baselines.settings import Setting
from tests.lab.evaluation.handmade_records import RECORDS, SETTINGS


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
    assert value("recall_by_length", 32_000, "a") == 1
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


def test_of_one_source_the_averages_have_its_numbers_and_intervals() -> None:
    documents = [
        replace(record, doc_id=f"d{number}", metrics={"recall@10": number**2 % 17 / 17})
        for number, record in enumerate(RECORDS[:1] * 20)
    ]
    one, *averages = rows_of(documents, SETTINGS[:1])
    assert [row["source"] for row in averages] == ["macro", "micro"]
    assert one["ci_low"] is not None
    for row in averages:
        assert row == {**one, "source": row["source"]}


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
    ("tokens", "edge", "name"),
    [
        (0, 0, "1-8k"),
        (7_999, 0, "1-8k"),
        (8_000, 8_000, "8-16k"),
        (31_999, 16_000, "16-32k"),
        (128_000, 128_000, "128-256k"),
        (256_000, 256_000, "256k+"),
        (10**6, 256_000, "256k+"),
    ],
)
def test_every_question_is_in_the_bin_of_its_length(
    tokens: int, edge: int, name: str
) -> None:
    assert length_bin(tokens) == edge
    assert length_name(edge) == name
