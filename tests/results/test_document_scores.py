"""One score for a document, by each aggregation."""

import numpy as np
import pytest

from spscanner_rag.results.document_scores import Aggregation, document_score
from spscanner_rag.results.ranking import best_first

FOUR = np.array([-2.0, 3.0, 0.0, 1.0], np.float32)


ALL: tuple[Aggregation, ...] = ("max", "mean", "mean_top", "sum", "logsumexp")


def test_by_hand() -> None:
    assert document_score(FOUR) == 3.0
    assert document_score(FOUR, "mean_top") == pytest.approx(4 / 3)
    assert document_score(FOUR, "mean_top", top=1) == 3.0
    assert document_score(FOUR, "mean_top", top=50) == pytest.approx(0.5)
    assert document_score(FOUR, "mean") == pytest.approx(0.5)
    assert document_score(FOUR, "first") == FOUR[0]
    assert document_score(FOUR[:1], "long") == FOUR[0]
    assert document_score(np.zeros(5), "sum") == 2.5
    assert document_score(np.zeros(5), "logsumexp") == pytest.approx(np.log(5))


@pytest.mark.parametrize("aggregation", ALL)
def test_documents_in_order(aggregation: Aggregation) -> None:
    documents = [
        np.array([-9.0]),
        np.array([]),
        FOUR,
        np.array([-9.0]),
        np.array([4.0, 4.0, 4.0]),
    ]
    scores = [document_score(logits, aggregation) for logits in documents]
    assert best_first(scores) == [
        (number, scores[number]) for number in (4, 2, 0, 3, 1)
    ]


def test_errors() -> None:
    with pytest.raises(
        ValueError, match="aggregation is 'median'; expected one of max, mean"
    ):
        document_score(FOUR, "median")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r'"long" got \d+ logits; expected one: use unit="document"'
    ):
        document_score(FOUR, "long")
    with pytest.raises(ValueError, match="top is 0"):
        document_score(FOUR, top=0)
    for bad in ([np.nan], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="one finite number for each sentence"):
            document_score(np.array(bad))
