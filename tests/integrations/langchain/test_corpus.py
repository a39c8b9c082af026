"""The retriever over many documents: what is read, filters, changes, the indexing API, persist and load."""

import copy
import pickle
import threading
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.runnables import RunnableLambda
from numpy.typing import NDArray
from pydantic import ValidationError

from langchain_spscanner import SPScannerRetriever
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.units import Unit

QUERY = "Who signed the treaty?"


class Reader:
    """Remembers which texts it was given, and over which collection."""

    uses_collection = True

    def __init__(self) -> None:
        self.read: list[str] = []
        self.units_of_collection: list[int] = []

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return self.score_units_many([(query, text, units)])[0]

    def score_units_many(
        self,
        requests: Sequence[Any],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[NDArray[np.float32]]:
        self.read += [text for _, text, _ in requests]
        self.units_of_collection.append(-1 if collection is None else collection.n_units)
        words = set(requests[0][0].lower().strip("?").split())
        return [
            np.array([len(words & set(text[u.start : u.end].lower().split())) for u in units], np.float32)
            for _, text, units in requests
        ]


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def notes() -> list[Document]:
    return [
        Document(
            f"Note {n}. The well of house {n} was dry.", metadata={"n": n, "even": n % 2 == 0}, id=str(n)
        )
        for n in range(30)
    ]


def numbers(found: Sequence[Document]) -> set[int]:
    return {document.metadata["n"] for document in found}


def test_the_ten_best_documents_are_read_by_default(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader)
    found = retriever.invoke("Was the well of house 17 dry?")
    assert len(reader.read) == 10
    assert "17" in found[0].page_content
    assert reader.units_of_collection == [60]  # the statistics are those of all documents


def test_all_are_read_within_the_bounds_or_without_a_first_stage(
    reader: Reader, notes: list[Document]
) -> None:
    for fields in ({"first_stage": "none"}, {"read_documents": 30}, {"read_documents": None}):
        retriever = SPScannerRetriever.from_documents(notes, scorer=reader, k=None, **fields)
        assert numbers(retriever.invoke(QUERY)) == set(range(30))
    assert reader.read == [note.page_content for note in notes] * 3
    few = SPScannerRetriever.from_documents(notes, scorer=reader, k=None, read_tokens=25)
    assert len(numbers(few.invoke("house 3"))) == 2


def test_a_runnable_as_first_stage_under_either_name(reader: Reader, notes: list[Document]) -> None:
    first = RunnableLambda(lambda query: [notes[5], notes[2]])
    for name in ("first_stage", "retriever"):
        retriever = SPScannerRetriever(documents=notes, scorer=reader, k=None, **{name: first})
        assert numbers(retriever.invoke(QUERY)) == {5, 2}
    alone = SPScannerRetriever(first_stage=first, scorer=reader, k=None, read_documents=1)
    assert numbers(alone.invoke(QUERY)) == {5}
    with pytest.raises(ValidationError, match="retriever: got first_stage as well"):
        SPScannerRetriever(first_stage="bm25", retriever=first)
    with pytest.raises(TypeError, match="first_stage: got int"):
        SPScannerRetriever(first_stage=3)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="got neither documents nor a retriever"):
        SPScannerRetriever(first_stage="none")


def test_the_score_of_the_first_stage_is_kept_on_request(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader, keep_retrieval_score=True, k=None)
    scores = {d.metadata["n"]: d.metadata["spscanner_retrieval_score"] for d in retriever.invoke("house 17")}
    assert max(scores, key=scores.__getitem__) == 17
    everything = retriever.model_copy(update={"first_stage": "none"}).invoke("house 17")
    assert not any("spscanner_retrieval_score" in d.metadata for d in everything)


def test_a_single_document_is_read_as_by_the_scanner_alone(
    tiny_scanner: Scanner, documents: list[Document]
) -> None:
    (result,) = tiny_scanner.scan_many([(QUERY, documents[0].page_content)])
    retriever = SPScannerRetriever.from_documents(documents[:1], scanner=tiny_scanner, order="document")
    logits = [d.metadata["spscanner_logit"] for d in retriever.invoke(QUERY)]
    assert logits == result.logits.tolist()


def test_scores_are_the_same_whatever_is_read(tiny_scanner: Scanner, documents: list[Document]) -> None:
    given = [*documents, Document("A treaty on wells. It was dry.", id="w"), Document("Snow fell.", id="s")]

    def logits(**fields: Any) -> dict[str | None, float]:
        retriever = SPScannerRetriever.from_documents(given, scanner=tiny_scanner, k=None, **fields)
        return {d.id: d.metadata["spscanner_logit"] for d in retriever.invoke(QUERY)}

    every = logits(first_stage="none")
    assert len(every) == 13
    for fields in (
        {"read_documents": 1},
        {"read_documents": 2},
        {"filter": lambda document: document.id == "w"},
        {"filter": {"source": "island.txt"}},
    ):
        some = logits(**fields)
        assert 0 < len(some) < 13
        assert some == pytest.approx({name: every[name] for name in some}, abs=1e-4)


@pytest.mark.parametrize(
    ("chosen_by", "expected"),
    [
        ({"even": True}, set(range(0, 30, 2))),
        ({"even": True, "n": 4}, {4}),
        ({"n": 99}, set()),
        ({"missing": None}, set()),
        ({}, set(range(30))),
        (lambda document: document.metadata["n"] > 27, {28, 29}),
        (lambda document: False, set()),
    ],
)
def test_a_filter_as_field_and_as_argument(
    reader: Reader, notes: list[Document], chosen_by: Any, expected: set[int]
) -> None:
    fields: dict[str, Any] = {"scorer": reader, "k": None, "read_documents": None}
    assert (
        numbers(SPScannerRetriever.from_documents(notes, **fields, filter=chosen_by).invoke("w")) == expected
    )
    retriever = SPScannerRetriever.from_documents(notes, **fields)
    assert numbers(retriever.invoke("w", filter=chosen_by)) == expected
    behind = SPScannerRetriever(first_stage=RunnableLambda(lambda query: notes), documents=notes, **fields)
    assert numbers(behind.invoke("w", filter=chosen_by)) == expected
    assert numbers(retriever.invoke("w")) == set(range(30))


def test_a_filter_comes_before_the_bounds(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader, k=None, read_documents=3)
    found = retriever.invoke("Was the well of house 17 dry?", filter={"even": True})
    assert len(numbers(found)) == 3
    assert all(number % 2 == 0 for number in numbers(found))
    assert len(reader.read) == 3


def test_a_filter_on_pages_reads_the_file_and_returns_the_page(reader: Reader) -> None:
    pages = [Document(f"Page {n}. A treaty.", metadata={"source": "a.pdf", "page": n}) for n in range(3)]
    retriever = SPScannerRetriever.from_documents(pages, scorer=reader, filter={"page": 1})
    found = retriever.invoke("treaty")
    assert {d.metadata["page"] for d in found} == {1}
    assert len(found) == 2
    assert reader.read == ["\n\n".join(page.page_content for page in pages)]


def test_what_is_no_filter_is_refused_before_any_work(reader: Reader, notes: list[Document]) -> None:
    with pytest.raises(TypeError, match="filter: got list; expected a function of a Document"):
        SPScannerRetriever.from_documents(notes, filter=[1])
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader)
    with pytest.raises(TypeError, match="filter: got int"):
        retriever.invoke("x", filter=3)
    assert reader.read == []


def test_filters_do_not_change_documents(reader: Reader, notes: list[Document]) -> None:
    def spoil(document: Document) -> bool:
        document.metadata["n"] = -1
        return True

    SPScannerRetriever.from_documents(notes, scorer=reader, filter=spoil).invoke("well")
    assert numbers(notes) == set(range(30))


def test_no_model_is_loaded_to_count(notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes, model="no/such-model")
    assert len(retriever._corpus().counted()[1].counts) == 30
    assert SPScannerRetriever.from_documents([], model="no/such-model").invoke(QUERY) == []


def test_words_are_counted_once_in_copies_and_pickles(
    reader: Reader, notes: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = SPScannerRetriever.from_documents(notes, model="no/such-model")
    data = pickle.dumps(retriever)
    monkeypatch.setattr(CollectionIndex, "add", None)
    for other in (retriever.model_copy(), copy.copy(retriever), copy.deepcopy(retriever), pickle.loads(data)):
        again = other.model_copy(update={"scorer": reader, "model": None})
        assert "17" in again.invoke("house 17")[0].page_content
    assert len(reader.read) == 40


def test_adding_counts_what_is_new(
    reader: Reader, notes: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader, read_documents=1, k=1)
    counted = []
    add = CollectionIndex.add

    def seen(self: CollectionIndex, key: str, texts: Sequence[str]) -> None:
        counted.append(key)
        add(self, key, texts)

    monkeypatch.setattr(CollectionIndex, "add", seen)
    assert retriever.add_documents([Document("A lynx in snow.", metadata={"n": 99})], ids=["lynx"]) == [
        "lynx"
    ]
    assert retriever.invoke("lynx")[0].metadata["n"] == 99
    retriever.delete(["lynx"])
    assert retriever.invoke("lynx")[0].metadata["n"] == 0
    assert len(counted) == 1
    assert reader.units_of_collection == [61, 60]


def test_ids_of_added_documents(notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes[:1], model="no/such-model")
    assert retriever.add_documents(notes[1:3], ids=["a", None]) == ["a", "2"]
    assert [d.id for d in retriever.get_by_ids(["a", "2", "none", "0"])] == ["0", "a", "2"]
    assert notes[1].id == "1"
    with pytest.raises(ValueError, match="ids: got 1 for 2 documents; expected one for each"):
        retriever.add_documents(notes[3:5], ids=["b"])
    with pytest.raises(ValueError, match="two different documents with the id 'b'"):
        retriever.add_documents(notes[3:5], ids=["b", "b"])
    assert len(retriever.documents or ()) == 3
    retriever.get_by_ids(["a"])[0].metadata["n"] = -1
    assert retriever.get_by_ids(["a"])[0].metadata["n"] == 1


def test_a_question_sees_the_documents_as_they_were(notes: list[Document]) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Waits(Reader):
        def score_units_many(self, requests: Sequence[Any], **options: Any) -> list[NDArray[np.float32]]:
            began.set()
            assert go_on.wait(10)
            return super().score_units_many(requests, **options)

    scorer = Waits()
    retriever = SPScannerRetriever.from_documents(notes[:5], scorer=scorer, k=None, batch_size=2)
    found: list[Document] = []
    thread = threading.Thread(target=lambda: found.extend(retriever.invoke("well")))
    thread.start()
    assert began.wait(10)
    retriever.add_documents(notes[5:8])
    retriever.delete(["0"])
    go_on.set()
    thread.join()
    assert numbers(found) == {0, 1, 2, 3, 4}
    assert scorer.units_of_collection == [10, 10, 10]
    assert numbers(retriever.invoke("well")) == {1, 2, 3, 4, 5, 6, 7}


def test_persist_and_load(
    reader: Reader, notes: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes[0].metadata["nested"] = {"list": [1, 2.5, None, "\ud800"]}
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader, k=7, filter={"even": True})
    retriever.persist(tmp_path / "kept")
    monkeypatch.setattr(CollectionIndex, "add", None)
    loaded = SPScannerRetriever.load(tmp_path / "kept", scorer=reader, k=7)
    assert loaded.documents == retriever.documents
    assert loaded.filter is None  # fields are not kept
    assert loaded.invoke("house 17", filter={"even": True}) == retriever.invoke("house 17")
    monkeypatch.undo()
    loaded.add_documents([Document("A lynx in snow.", metadata={"n": 99})])
    loaded.persist(tmp_path / "kept")
    again = SPScannerRetriever.load(str(tmp_path / "kept"), scorer=reader, read_documents=1)
    assert numbers(again.invoke("lynx")) == {99}


def test_an_empty_corpus_is_kept(tmp_path: Path) -> None:
    SPScannerRetriever.from_documents([], model="no/such-model").persist(tmp_path)
    assert SPScannerRetriever.load(tmp_path, model="no/such-model").invoke(QUERY) == []


def test_another_document_key_at_loading_is_counted_again(reader: Reader, tmp_path: Path) -> None:
    pages = [Document(f"Page {n}. A treaty.", metadata={"source": "a.pdf", "page": n}) for n in range(3)]
    SPScannerRetriever.from_documents(pages, scorer=reader).persist(tmp_path)
    SPScannerRetriever.load(tmp_path, scorer=reader, document_key=None).invoke("treaty")
    assert reader.read == [page.page_content for page in pages]
    assert reader.units_of_collection == [6]


def test_metadata_that_json_cannot_keep_are_named(notes: list[Document], tmp_path: Path) -> None:
    notes[3].metadata["when"] = date(1911, 5, 14)
    retriever = SPScannerRetriever.from_documents(notes, model="no/such-model")
    with pytest.raises(ValueError, match=r"metadata\['when'\] of document '3' is date"):
        retriever.persist(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path, notes: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"got no manifest\.json there"):
        SPScannerRetriever.load(tmp_path)
    SPScannerRetriever.from_documents(notes, model="no/such-model").persist(tmp_path)
    (place,) = tmp_path.glob("*.units.npy")
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(ValueError, match=place.name):
        SPScannerRetriever.load(tmp_path, model="no/such-model")


def sync(
    source: Sequence[Document], records: Any, retriever: SPScannerRetriever, **options: Any
) -> dict[str, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also LangChain's own for beta classes
        counts: dict[str, int] = index(
            source, records, retriever.as_document_index(), key_encoder="sha256", **options
        )
    return counts


def test_the_indexing_api(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents([], scorer=reader, read_documents=1)
    records = InMemoryRecordManager("notes")
    records.create_schema()
    source = [note.model_copy(update={"id": None}) for note in notes]
    counts = sync(source, records, retriever, cleanup="full")
    assert counts == {"num_added": 30, "num_updated": 0, "num_skipped": 0, "num_deleted": 0}
    assert numbers(retriever.invoke("house 17")) == {17}
    changed = [*source[:17], Document("A lynx.", metadata={"n": 99}), *source[18:]]
    counts = sync(changed, records, retriever, cleanup="full", batch_size=7)
    assert counts == {"num_added": 1, "num_updated": 0, "num_skipped": 29, "num_deleted": 1}
    assert numbers(retriever.invoke("lynx")) == {99}
    assert 17 not in numbers(retriever.documents or ())
    counts = sync([], records, retriever, cleanup="full")
    assert counts["num_deleted"] == 30
    assert retriever.invoke("lynx") == []


def test_the_indexing_api_by_source_and_forced(reader: Reader) -> None:
    retriever = SPScannerRetriever.from_documents([], scorer=reader, document_key=None)
    records = InMemoryRecordManager("pages")
    records.create_schema()
    pages = [Document(f"Page {n}. A treaty.", metadata={"source": "a.pdf", "n": n}) for n in range(3)]
    sync(pages, records, retriever, cleanup="incremental", source_id_key="source")
    counts = sync(pages, records, retriever, source_id_key="source", force_update=True)
    assert counts["num_updated"] == 3
    counts = sync(pages[:1], records, retriever, cleanup="scoped_full", source_id_key="source")
    assert counts["num_deleted"] == 2
    assert numbers(retriever.invoke("treaty")) == {0}


async def test_the_indexing_api_async(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents([], scorer=reader)
    records = InMemoryRecordManager("notes")
    await records.acreate_schema()
    documents = retriever.as_document_index()
    counts = await aindex(notes, records, documents, cleanup="full", key_encoder="sha256")
    assert counts["num_added"] == 30
    found = await documents.ainvoke("Was the well of house 17 dry?")
    assert found == await retriever.ainvoke("Was the well of house 17 dry?")


def test_a_document_index_deletes_what_is_there_and_answers_as_the_retriever(
    reader: Reader, notes: list[Document]
) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader)
    documents = retriever.as_document_index()
    assert documents.invoke("house 17") == retriever.invoke("house 17")
    response = documents.delete(["3", "not here"])
    assert response == {"succeeded": ["3"], "num_deleted": 1, "failed": [], "num_failed": 0}
    assert documents.get(["3", "4"]) == [notes[4]]
    with pytest.raises(ValueError, match="ids: got None"):
        documents.delete()
