"""The retriever over many documents: which it reads, filters, changes."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_spscanner import SPScannerRetriever
from tests.integrations.hosts import Reader


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def notes() -> list[Document]:
    return [
        Document(
            f"Note {n}. The well of house {n} was dry.",
            metadata={"n": n, "even": n % 2 == 0},
            id=str(n),
        )
        for n in range(30)
    ]


def numbers(found: Sequence[Document]) -> set[int]:
    return {document.metadata["n"] for document in found}


@pytest.mark.parametrize(
    ("chosen_by", "expected"),
    [
        ({"missing": None}, set()),
        ({}, set(range(30))),
        (lambda document: document.metadata["n"] > 27, {28, 29}),
    ],
)
def test_filters_by_both(
    reader: Reader, notes: list[Document], chosen_by: Any, expected: set[int]
) -> None:
    fields: dict[str, Any] = {"scorer": reader, "k": None, "read_documents": None}
    assert (
        numbers(
            SPScannerRetriever.from_documents(notes, **fields, filter=chosen_by).invoke(
                "w"
            )
        )
        == expected
    )
    retriever = SPScannerRetriever.from_documents(notes, **fields)
    assert numbers(retriever.invoke("w", filter=chosen_by)) == expected
    assert numbers(retriever.invoke("w")) == set(range(30))


def test_ids_of_added_documents(notes: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(notes[:1], model="no/such-model")
    assert retriever.add_documents(notes[1:3], ids=["a", None]) == ["a", "2"]
    assert [d.id for d in retriever.documents or ()] == ["0", "a", "2"]
    assert notes[1].id == "1"
    (nameless,) = retriever.add_documents([Document("Nameless.")])
    retriever.delete(nameless)
    with pytest.raises(
        ValueError, match="ids: got 1 for 2 documents; expected one for each"
    ):
        retriever.add_documents(notes[3:5], ids=["b"])
    with pytest.raises(ValueError, match="two different documents with the id 'b'"):
        retriever.add_documents(notes[3:5], ids=["b", "b"])
    assert len(retriever.documents or ()) == 3
