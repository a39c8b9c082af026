"""Which documents a question is asked of, and which of them are read."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lab.evaluation.corpus_units import Shelf
from spscanner_rag.lab.evaluation.first_stage import Reading, asked_of, documents_to_read
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.text.units import Unit

TEXTS = [
    "A heron flies. Nothing else moves.",
    "The otter swims in the river.",
    "An otter sleeps. The otter swims where an otter swam.",
    "Rain fell all day.",
    "Snow fell all night.",
    "An otter rests.",
]
QUERY = "Which otter swims?"


@pytest.fixture
def corpus() -> SourceCorpus:
    documents = tuple(Document(str(number), "wild", "", text, ()) for number, text in enumerate(TEXTS))
    return SourceCorpus("wild", documents, [], 0, 0)


class Snow:
    """Likes long texts about snow."""

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return np.array([100 * ("Snow" in text) + len(text)] * len(units), np.float32)


def test_the_whole_corpus(corpus: SourceCorpus) -> None:
    assert list(asked_of(Reading(), Shelf(), corpus, QUERY, 3)) == list(range(6))


@pytest.mark.parametrize(
    ("right", "n", "expected"),
    [
        (1, 2, [1, 2]),
        (1, 3, [1, 2, 5]),
        (3, 3, [1, 2, 3]),  # the right one need not be near
        (1, 5, [0, 1, 2, 3, 5]),  # where words do not decide, the order of the corpus does
        (1, 6, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_hardest(corpus: SourceCorpus, right: int, n: int, expected: list[int]) -> None:
    assert asked_of(Reading(among=n), Shelf(), corpus, QUERY, right) == expected


def test_everything_is_read_without_a_first_stage_or_below_the_bound(corpus: SourceCorpus) -> None:
    asked = [1, 3, 4]
    for reading in (
        Reading(documents=1),
        Reading(first_stage="bm25", documents=3),
        Reading(first_stage=Snow()),
    ):
        assert documents_to_read(reading, Shelf(), corpus, QUERY, asked) == asked


def test_by_words(corpus: SourceCorpus) -> None:
    shelf = Shelf()
    for top, asked, expected in (
        (1, range(6), [2]),
        (2, range(6), [1, 2]),
        (4, range(6), [1, 2, 5]),  # no other shares a word
        (1, [0, 1, 3, 5], [1]),
        (1, [0, 3, 4], []),
    ):
        reading = Reading(first_stage="bm25", documents=top)
        assert documents_to_read(reading, shelf, corpus, QUERY, asked) == expected


def test_by_a_retriever(corpus: SourceCorpus) -> None:
    reading = Reading(first_stage=Snow(), documents=2)
    assert documents_to_read(reading, Shelf(), corpus, QUERY, range(6)) == [2, 4]
    assert documents_to_read(reading, Shelf(), corpus, QUERY, [0, 1, 3]) == [0, 1]
