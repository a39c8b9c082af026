"""The retriever over many documents: what is read, filters, changes, the indexing API, persist and load."""

import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index

from langchain_spscanner import SPScannerRetriever
from tests.integrations.hosts import Reader


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


@pytest.mark.parametrize(
    ("chosen_by", "expected"),
    [
        ({"even": True}, set(range(0, 30, 2))),
        ({"missing": None}, set()),
        ({}, set(range(30))),
        (lambda document: document.metadata["n"] > 27, {28, 29}),
        (lambda document: False, set()),
    ],
)
def test_filters_by_both(reader: Reader, notes: list[Document], chosen_by: Any, expected: set[int]) -> None:
    fields: dict[str, Any] = {"scorer": reader, "k": None, "read_documents": None}
    assert (
        numbers(SPScannerRetriever.from_documents(notes, **fields, filter=chosen_by).invoke("w")) == expected
    )
    retriever = SPScannerRetriever.from_documents(notes, **fields)
    assert numbers(retriever.invoke("w", filter=chosen_by)) == expected
    assert numbers(retriever.invoke("w")) == set(range(30))


def test_ids_of_added_documents(notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes[:1], model="no/such-model")
    assert retriever.add_documents(notes[1:3], ids=["a", None]) == ["a", "2"]
    assert [d.id for d in retriever.get_by_ids(["a", "2", "none", "0"])] == ["0", "a", "2"]
    assert notes[1].id == "1"
    (nameless,) = retriever.add_documents([Document("Nameless.")])
    retriever.delete(nameless)
    with pytest.raises(ValueError, match="ids: got 1 for 2 documents; expected one for each"):
        retriever.add_documents(notes[3:5], ids=["b"])
    with pytest.raises(ValueError, match="two different documents with the id 'b'"):
        retriever.add_documents(notes[3:5], ids=["b", "b"])
    assert len(retriever.documents or ()) == 3
    retriever.get_by_ids(["a"])[0].metadata["n"] = -1
    assert retriever.get_by_ids(["a"])[0].metadata["n"] == 1


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


async def test_the_indexing_api_async(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents([], scorer=reader)
    records = InMemoryRecordManager("notes")
    await records.acreate_schema()
    documents = retriever.as_document_index()
    counts = await aindex(notes, records, documents, cleanup="full", key_encoder="sha256")
    assert counts["num_added"] == 30
    found = await documents.ainvoke("Was the well of house 17 dry?")
    assert found == await retriever.ainvoke("Was the well of house 17 dry?")


def test_a_document_index_deletes_and_answers_as_the_retriever(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes, scorer=reader)
    documents = retriever.as_document_index()
    assert documents.invoke("house 17") == retriever.invoke("house 17")
    response = documents.delete(["3", "not here"])
    assert response == {"succeeded": ["3"], "num_deleted": 1, "failed": [], "num_failed": 0}
    assert documents.get(["3", "4"]) == [notes[4]]
    with pytest.raises(ValueError, match="ids: got None"):
        documents.delete()
