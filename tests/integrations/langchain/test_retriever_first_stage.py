"""The retriever behind a first stage, with and without whole documents."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_spscanner import SPScannerRetriever

QUERY = "Who signed the treaty?"


def chunks_of(
    documents: Sequence[Document], size: int = 60, overlap: int = 0, **options: Any
) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=True, **options
    )
    return splitter.split_documents(documents)


@pytest.mark.parametrize("with_start", [False, True])
@pytest.mark.parametrize(
    ("key", "change"),
    [
        *product(("source", None), ("none", "store", "without metadata")),
        ("source", "unknown key"),
    ],
)
def test_a_chunk_finds_its_document(
    word_scorer: Any,
    documents: list[Document],
    first_stage: Callable[..., Any],
    with_start: bool,
    key: str | None,
    change: str,
) -> None:
    given = documents
    if change == "without metadata":
        given = [Document(d.page_content, id=d.id) for d in documents]
    chunk = chunks_of(given)[-1]
    if not with_start:
        del chunk.metadata["start_index"]
    if change == "unknown key":
        chunk.metadata["unheard_of"] = 3
    if change == "store":  # a store adds keys, and may return numbers as floats
        chunk.metadata |= {"_id": "17", "relevance_score": 0.25}
        if with_start:
            chunk.metadata["start_index"] = float(chunk.metadata["start_index"])
    retriever = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=given, scorer=word_scorer, document_key=key
    )
    found = retriever.invoke(QUERY)
    assert len(found) == 5
    assert {(d.id or "").split(":")[0] for d in found} == {"i"}
    assert not any(
        "_id" in d.metadata for d in found
    )  # the metadata are the document's


def test_other_white_space_finds_its_document(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    whole = Document(
        "The well\nwas  dry. The council\nsigned it. Rain fell.",
        metadata={"source": "a"},
    )
    chunk = Document("The council signed it.", metadata={"source": "a"})
    retriever = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=[whole], scorer=word_scorer
    )
    found = retriever.invoke("council")
    assert [d.page_content for d in found][:1] == ["The council\nsigned it."]
    assert len(found) == 3


def test_a_chunk_of_two_documents_is_no_guess(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    wholes = [
        Document(f"{name} wrote it. All rights reserved.") for name in ("Ann", "Bob")
    ]
    retriever = SPScannerRetriever.from_retriever(
        first_stage([Document("All rights reserved.")]),
        documents=wholes,
        scorer=word_scorer,
    )
    assert [d.page_content for d in retriever.invoke("rights")] == [
        "All rights reserved."
    ]


def test_a_chunk_at_an_unknown_place_has_no_span(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    chunk = Document(
        "A treaty. Rain fell.", metadata={"source": "a", "start_index": -1}, id="c"
    )
    found = SPScannerRetriever.from_retriever(
        first_stage([chunk]), scorer=word_scorer
    ).invoke("treaty")
    assert [(d.metadata["start_index"], d.metadata["end_index"]) for d in found] == [
        (-1, -1)
    ] * 2
    assert [d.id for d in found] == ["c:0-9", "c:10-20"]
    whole = Document("Snow. A treaty. Rain fell.", metadata={"source": "a"}, id="w")
    found = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=[whole], scorer=word_scorer, order="document"
    ).invoke("treaty")
    assert [d.id for d in found] == ["w:0-5", "w:6-15", "w:16-26"]


def test_a_first_stage_without_documents_is_named(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError, match="first stage's documents: got str"):
        SPScannerRetriever.from_retriever(
            first_stage(["text"]), scorer=word_scorer
        ).invoke(QUERY)
