import random

import numpy as np
import pytest

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data import source_collections as module
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.source_collections import SourceCollections
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scan.prepare import Reading

QUESTION = "Where was the badger on day 8?"


def model_texts(document: Document, reading: Reading) -> list[str]:
    return [unit.model_text for unit in reading.segmenter.segment(document.text)]


def test_the_nearest_documents_are_those_of_a_collection(distinct: list[Document], reading: Reading) -> None:
    collections = SourceCollections(DocumentStore(distinct), reading, {"roads"})
    asked = collections.ask(9, QUESTION)
    roads = [(number, d) for number, d in enumerate(distinct) if d.source == "roads"]
    index = CollectionIndex()
    for number, document in roads:
        index.add(str(number), model_texts(document, reading))
    assert asked.numbers.tolist() == [number for number, _ in roads]
    assert asked.nearest() == [int(key) for key, _ in index.best_texts(QUESTION)]
    assert distinct[asked.nearest()[0]].doc_id == "roads-8"


def test_statistics_over_some_documents_are_those_of_their_collection(
    distinct: list[Document], reading: Reading
) -> None:
    collections = SourceCollections(DocumentStore(distinct), reading, {"walks", "roads"})
    asked = collections.ask(9, QUESTION)
    everyone = asked.numbers.tolist()
    for members in ([9, 7, 14], everyone):
        index = CollectionIndex.of([model_texts(distinct[number], reading) for number in sorted(members)])
        expected = reading.statistics(QUESTION, index)
        found = asked.statistics(members)
        np.testing.assert_allclose(found.idf, expected.idf)
        np.testing.assert_allclose(found.own, expected.own)
        np.testing.assert_allclose(found.around, expected.around)
        assert found.mean_words == pytest.approx(expected.mean_words)


def test_scores_and_starts_are_those_of_the_document_s_units(
    distinct: list[Document], reading: Reading
) -> None:
    collections = SourceCollections(DocumentStore(distinct), reading, {"roads"})
    starts = collections.unit_starts(9)
    assert starts.tolist() == [unit.start for unit in reading.segmenter.segment(distinct[9].text)]
    scores = collections.ask(9, QUESTION).scores(9)
    assert len(scores) == len(starts)
    assert scores.argmax() == 0  # the badger's sentence


def test_collections_of_every_size_are_drawn(distinct: list[Document], reading: Reading) -> None:
    asked = SourceCollections(DocumentStore(distinct), reading, {"roads"}).ask(9, QUESTION)
    draw = random.Random(0)
    sizes = []
    for _ in range(300):
        some = asked.some([9, 7], draw)
        assert {9, 7} <= set(some) <= set(asked.numbers.tolist())
        assert len(set(some)) == len(some)
        sizes.append(len(some))
    assert set(sizes) == set(range(2, 13))
    assert 0.25 < np.mean(np.array(sizes) == 12) < 0.45


def test_a_large_source_is_divided(
    distinct: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_UNITS", 50)  # of 120
    collections = SourceCollections(DocumentStore(distinct), reading, {"roads"})
    roads = [number for number, d in enumerate(distinct) if d.source == "roads"]
    seen = []
    for number in roads:
        asked = collections.ask(number, QUESTION)
        assert number in asked.numbers
        assert set(asked.nearest()) <= set(asked.numbers.tolist())
        seen.append(tuple(asked.numbers.tolist()))
    assert len(set(seen)) == 3
    assert sorted(sum(set(seen), ())) == roads


def test_a_document_without_text_is_no_obstacle(distinct: list[Document], reading: Reading) -> None:
    empty = Document("roads-empty", "roads", "", "  ", ())
    collections = SourceCollections(DocumentStore([*distinct, empty]), reading, {"roads"})
    asked = collections.ask(9, QUESTION)
    last = len(distinct)
    assert last in asked.numbers
    assert last not in asked.nearest()
    assert len(asked.scores(last)) == 0
    assert asked.statistics([9, last]).idf == pytest.approx(asked.statistics([9]).idf)
    assert collections.ask(9, "xyzzy").nearest() == []
