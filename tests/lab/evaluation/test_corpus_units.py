"""Documents of a corpus are cut once, and counted where a scorer asks for it."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lab.evaluation.corpus_units import CorpusUnits, Shelf
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scorers import Request

TEXTS = ["The otter swims. A heron flies.", "", "Rain fell. Otters rest. The end came."]


@pytest.fixture
def corpus() -> SourceCorpus:
    documents = tuple(Document(str(number), "wild", "", text, ()) for number, text in enumerate(TEXTS))
    return SourceCorpus("wild", documents, [], 0, 0)


class Counting:
    """Keeps what it is asked; its scores are the numbers of words of the collection's index."""

    uses_collection = True

    def __init__(self) -> None:
        self.asked: list[tuple[int, int | None]] = []

    def score_units_many(
        self, requests: Sequence[Request], *, cancelled: object, collection: CollectionIndex | None = None
    ) -> list[NDArray[np.float32]]:
        self.asked.append((len(requests), None if collection is None else collection.n_units))
        return [np.zeros(len(units), np.float32) for _, _, units in requests]

    score_units = None


def words(text: str) -> int:
    return len(text.split())


def test_a_pool_lies_end_to_end(corpus: SourceCorpus) -> None:
    units = CorpusUnits(corpus, "sentence")
    pool = units.pool([0, 1, 2], words)
    joined = "".join(TEXTS)
    texts = [joined[start:end] for start, end in zip(*pool.spans, strict=True)]
    assert texts == ["The otter swims.", "A heron flies.", "Rain fell.", "Otters rest.", "The end came."]
    assert pool.tokens.tolist() == [3, 3, 2, 2, 3]
    last = units.pool([2], words)
    assert last.spans.starts.tolist() == pool.spans.starts[2:].tolist()
    place = units.place(2, Spans.of(units.units(2)[1:2]))
    assert joined[place.starts[0] : place.ends[0]] == "Otters rest."


def test_an_empty_pool(corpus: SourceCorpus) -> None:
    for numbers in ([], [1]):
        pool = CorpusUnits(corpus, "sentence").pool(numbers, words)
        assert len(pool.spans.starts) == len(pool.spans.ends) == len(pool.tokens) == 0
        assert pool.tokens.dtype == np.int64


def test_scores_know_the_collection(corpus: SourceCorpus) -> None:
    units, scorer = CorpusUnits(corpus, "sentence"), Counting()
    scores = units.scores(scorer, "Which otter?", [0, 1], units.every)  # type: ignore[arg-type]
    assert [len(values) for values in scores] == [2, 0]
    units.scores(scorer, "Which otter?", [0], [0, 1])  # type: ignore[arg-type]
    assert scorer.asked == [(1, 5), (1, 2)]  # a text without units is not passed on


def test_the_whole_index_is_made_once(corpus: SourceCorpus) -> None:
    units = CorpusUnits(corpus, "sentence")
    assert units.index(units.every) is units.index(units.every)
    assert units.index(units.every).n_units == 5
    assert units.index([2]).n_units == 3


def test_a_shelf_keeps_what_was_cut(corpus: SourceCorpus) -> None:
    shelf = Shelf()
    sentences = shelf.units(corpus, "sentence")
    assert shelf.units(corpus, "sentence") is sentences
    assert len(shelf.units(corpus, "document").units(0)) == 1
    assert len(sentences.units(0)) == 2
