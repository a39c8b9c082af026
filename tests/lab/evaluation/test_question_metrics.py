"""The metrics of one question."""

import numpy as np
import pytest

from spscanner_lab.evaluation.corpus_units import UnitPool
from spscanner_lab.evaluation.question_metrics import (
    document_metrics,
    evidence_metrics,
    recall_by_position,
    within,
)
from spscanner_rag.results.coverage import Spans
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.lab.evaluation.tiny_study import TEXT


def pool_of(*spans: tuple[int, int]) -> UnitPool:
    """Units with one token per character."""
    own = Spans.of([Unit(start, end, "") for start, end in spans])
    return UnitPool(own, own.ends - own.starts)


def test_measure_by_hand() -> None:
    sentences = Spans.of(SentenceSegmenter().segment(TEXT))
    evidence = Spans(sentences.starts[[0, 2]], sentences.ends[[0, 2]])
    metrics = evidence_metrics(
        UnitPool(sentences, np.full(5, 3)),
        np.array([2.0, 3.0, 1.0, 0.0, -1.0]),
        evidence,
    )
    expected = {
        "recall@1": 0,
        "recall@5": 1,
        "precision@5": 0.4,
        "success@1": 0,
        "mrr": 0.5,
    }
    assert metrics | expected == metrics
    ideal = 1 + 1 / np.log2(3)
    assert metrics["ndcg@5"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(4)) / ideal)


def test_the_best_recall_is_that_of_the_units_that_hold_most_evidence() -> None:
    units = pool_of((0, 10), (10, 20), (20, 30), (30, 40))
    evidence = pool_of(
        (0, 4), (20, 24), (24, 28), (35, 39)
    ).spans  # 1, 0, 2 and 1 in the units
    for scores, recalls in (
        ([4.0, 3, 2, 1], [0.25, 0.25, 0.75]),
        ([1.0, 2, 3, 4], [0.25, 0.75, 0.75]),
    ):
        metrics = evidence_metrics(units, np.array(scores), evidence, [1, 2, 3])
        assert [metrics[f"best_recall@{k}"] for k in (1, 2, 3)] == [0.5, 0.75, 1]
        assert [metrics[f"recall@{k}"] for k in (1, 2, 3)] == recalls


def test_evidence_across_chunks() -> None:
    # of 20 characters, the first chunk holds 12 and the second 8
    metrics = evidence_metrics(
        pool_of((0, 12), (12, 30), (30, 40)),
        np.array([1.0, 3.0, 2.0]),
        pool_of((0, 20)).spans,
    )
    assert (
        metrics["recall@1"],
        metrics["recall@5"],
        metrics["recall_at_tokens@250"],
    ) == (0, 1, 1)
    assert metrics["mrr"] == pytest.approx(1 / 3)
    # no chunk holds half of it
    metrics = evidence_metrics(
        pool_of((0, 4), (4, 8), (8, 12)),
        np.array([3.0, 2.0, 1.0]),
        pool_of((0, 12)).spans,
    )
    assert (metrics["recall@1"], metrics["recall@5"]) == (0, 1)  # two chunks together
    assert metrics["mrr"] == metrics["map"] == metrics["ndcg@5"] == 0


def test_a_sentence_counts_where_its_middle_is() -> None:
    def shares(ranks: list[int], *spans: tuple[int, int]) -> dict[str, float]:
        return recall_by_position(pool_of(*spans).spans, np.array(ranks), 5, 100)

    first, last = "recall_by_position@5@1", "recall_by_position@5@10"
    assert shares([5, 6, 1], (0, 4), (5, 9), (90, 100)) == {first: 0.5, last: 1}
    assert shares([1] * 3, (9, 10), (9, 11), (99, 100)) == {
        first: 1,
        "recall_by_position@5@2": 1,
        last: 1,
    }


def test_evidence_without_the_white_space_between_units() -> None:
    units = pool_of((0, 10), (12, 20), (25, 30)).spans
    found = within(units, [(5, 15), (8, 13), (19, 27), (30, 33)])
    assert list(zip(*found, strict=True)) == [(5, 10), (12, 15), (19, 20), (25, 27)]
    assert (
        len(within(units, []).starts)
        == len(within(pool_of().spans, [(0, 4)]).starts)
        == 0
    )


def test_document_metrics_by_hand() -> None:
    scores = [np.array([1.0, -2.0]), np.zeros(0), np.array([3.0])]
    expected = {
        "document_mrr": 0.5,
        "document_recall@1": 0,
        "document_recall@5": 1,
        "document_recall@10": 1,
    }
    assert document_metrics(scores, [True, False, False]) == expected
    assert (
        document_metrics(scores, [False, True, False])["document_mrr"] == 1 / 3
    )  # empty, so it ranks last
    for none in (document_metrics(scores, [False] * 3), document_metrics([], [])):
        assert none == dict.fromkeys(expected, 0.0)
