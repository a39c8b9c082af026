"""Sentence logits to document scores, by hand and against scipy."""

import numpy as np
import pytest

from spscanner_rag.results.selection import Aggregation, best_first, document_score

LOGITS = np.array([-2.0, 3.0, 0.0, 1.0], np.float32)
ALL: tuple[Aggregation, ...] = ("max", "mean", "mean_top", "sum", "logsumexp")


def test_by_hand() -> None:
    assert document_score(LOGITS) == 3.0
    assert document_score(LOGITS, "mean_top") == pytest.approx(4 / 3)
    assert document_score(LOGITS, "mean_top", top=1) == 3.0
    assert document_score(LOGITS, "mean_top", top=50) == pytest.approx(0.5)
    assert document_score(LOGITS, "mean") == pytest.approx(0.5)
    assert document_score(LOGITS, "first") == LOGITS[0]
    assert document_score(LOGITS[:1], "long") == LOGITS[0]
    assert document_score(np.zeros(5), "sum") == 2.5
    assert document_score(np.zeros(5), "logsumexp") == pytest.approx(np.log(5))


@pytest.mark.parametrize("aggregation", ALL)
def test_documents_in_order(aggregation: Aggregation) -> None:
    documents = [np.array([-9.0]), np.array([]), LOGITS, np.array([-9.0]), np.array([4.0, 4.0, 4.0])]
    scores = [document_score(logits, aggregation) for logits in documents]
    assert best_first(scores) == [(number, scores[number]) for number in (4, 2, 0, 3, 1)]


def test_errors() -> None:
    with pytest.raises(ValueError, match="aggregation is 'median'; expected one of max, mean"):
        document_score(LOGITS, "median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r'"long" got \d+ logits; expected one: use unit="document"'):
        document_score(LOGITS, "long")
    with pytest.raises(ValueError, match="top is 0"):
        document_score(LOGITS, top=0)
    for bad in ([np.nan], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="one finite number for each sentence"):
            document_score(np.array(bad))
