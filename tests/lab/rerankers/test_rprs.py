"""RPRS: shares of near sentences on both sides, worked out by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_lab.rerankers.rprs import RPRS
from spscanner_rag.text.units import Unit


class Topics:
    """Embeds a sentence by the topics that it names."""

    name = "topics"
    TOPICS = ("rain", "ship", "bell")

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def encode(self, sentences: list[str], **options: object) -> NDArray[np.float32]:
        self.sentences += sentences
        vectors = [
            [float(topic in sentence.lower()) for topic in self.TOPICS]
            for sentence in sentences
        ]
        return np.array(vectors, np.float32)


QUERY = "The rain fell. The ship left."
TEXT = "Rain fell. The bell rang.\n\nA ship came. The rain fell.\n\nThe bell rang."


def shares(scorer: RPRS) -> list[float]:
    units = scorer.units_of(TEXT)
    assert all(isinstance(unit, Unit) for unit in units)
    (raw,) = scorer.raw_scores_many([(QUERY, TEXT, units)])
    return raw.tolist()


def test_the_share_of_both_sides() -> None:
    scorer = RPRS(Topics(), "passage")
    assert shares(scorer) == pytest.approx([1 / 2 * 1 / 2, 1.0, 0.0])
    logits = scorer.score_units(QUERY, TEXT, scorer.units_of(TEXT))
    assert np.argsort(-logits).tolist() == [1, 0, 2]
    assert np.isfinite(logits).all()


def test_vectors_are_stored_for_later_questions() -> None:
    embedder = Topics()
    scorer = RPRS(embedder, "passage")
    assert scorer.keeps_texts
    first = shares(scorer)
    count = len(embedder.sentences)
    assert shares(scorer) == first
    assert len(embedder.sentences) == count


def test_the_threshold() -> None:
    assert shares(RPRS(Topics(), "passage", threshold=-1)) == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="threshold is 2; expected a cosine"):
        RPRS(Topics(), threshold=2)
