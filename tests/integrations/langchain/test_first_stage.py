"""The retriever behind a first stage, with and without whole documents."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_spscanner import SPScannerRetriever
from spscanner_rag.scanner import Scanner

QUERY = "Who signed the treaty?"


def chunks_of(
    documents: Sequence[Document], size: int = 60, overlap: int = 0, **options: Any
) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=True, **options
    )
    return splitter.split_documents(documents)


def test_chunks_are_expanded_to_whole_documents(
    tiny_scanner: Scanner,
    documents: list[Document],
    first_stage: Callable[..., Any],
    full_scores: Callable[..., Any],
) -> None:
    chunk = next(c for c in chunks_of(documents) if "signed a treaty" in c.page_content)
    retriever = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=documents, scanner=tiny_scanner
    )
    found = retriever.invoke(QUERY)
    texts = [d.page_content for d in documents]
    expected = full_scores(tiny_scanner, QUERY, texts[0], texts)
    logits = {
        (d.metadata["start_index"], d.metadata["end_index"]): d.metadata["spscanner_logit"] for d in found
    }
    assert logits.keys() == expected.keys()
    np.testing.assert_allclose([logits[s] for s in expected], list(expected.values()), atol=1e-4)
    assert all(d.id and d.id.startswith("h:") for d in found)


@pytest.mark.parametrize("with_start", [False, True])
@pytest.mark.parametrize(
    ("key", "change"),
    [
        *product(("source", None), ("none", "store", "without metadata")),
        ("source", "unknown key"),
        ("source", "other metadata"),
        (None, "other metadata"),
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
    if change == "other metadata":  # as of a store that was filled by another program
        chunk.metadata = {"title": "The island", "start_index": 9}
    if change == "store":  # a store adds its keys, and may give numbers back as floats
        chunk.metadata |= {"_id": "17", "relevance_score": 0.25}
        if with_start:
            chunk.metadata["start_index"] = float(chunk.metadata["start_index"])
    retriever = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=given, scorer=word_scorer, document_key=key
    )
    found = retriever.invoke(QUERY)
    assert len(found) == 5
    assert {(d.id or "").split(":")[0] for d in found} == {"i"}
    assert not any("_id" in d.metadata for d in found)  # the metadata is the document's


def test_a_chunk_with_other_white_space_finds_its_document(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    whole = Document("The well\nwas  dry. The council\nsigned it. Rain fell.", metadata={"source": "a"})
    chunk = Document("The council signed it.", metadata={"source": "a"})
    retriever = SPScannerRetriever.from_retriever(first_stage([chunk]), documents=[whole], scorer=word_scorer)
    found = retriever.invoke("council")
    assert [d.page_content for d in found][:1] == ["The council\nsigned it."]
    assert len(found) == 3


def test_a_chunk_of_none_of_the_documents_is_scanned_by_itself(
    word_scorer: Any, documents: list[Document], first_stage: Callable[..., Any]
) -> None:
    stranger = Document("A treaty elsewhere.", metadata={"source": "harbour.txt", "start_index": 7})
    retriever = SPScannerRetriever.from_retriever(
        first_stage([stranger, documents[1]]), documents=documents, scorer=word_scorer, order="document"
    )
    found = retriever.invoke("treaty")
    assert found[0].page_content == "A treaty elsewhere."
    assert (found[0].metadata["start_index"], found[0].metadata["end_index"]) == (7, 26)
    assert {d.metadata["source"] for d in found[1:]} == {"island.txt"}


def test_a_chunk_that_stands_in_two_documents_is_not_guessed_at(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    wholes = [Document(f"{name} wrote it. All rights reserved.") for name in ("Ann", "Bob")]
    retriever = SPScannerRetriever.from_retriever(
        first_stage([Document("All rights reserved.")]), documents=wholes, scorer=word_scorer
    )
    assert [d.page_content for d in retriever.invoke("rights")] == ["All rights reserved."]


def test_a_page_stands_for_its_file(word_scorer: Any, first_stage: Callable[..., Any]) -> None:
    pages = [
        Document(f"Page {n} of {name}. A treaty.", metadata={"source": name, "page": n})
        for name in ("a.pdf", "b.pdf")
        for n in range(3)
    ]
    chunk = Document("Page 1 of b.pdf.", metadata={"source": "b.pdf", "page": 1, "start_index": 0})
    make = SPScannerRetriever.from_retriever
    found = make(first_stage([chunk]), documents=pages, scorer=word_scorer, order="document").invoke("x")
    assert [(d.metadata["source"], d.metadata["page"]) for d in found] == [
        ("b.pdf", n) for n in (0, 0, 1, 1, 2, 2)
    ]
    alone = make(first_stage([chunk]), documents=pages, scorer=word_scorer, document_key=None).invoke("x")
    assert [(d.metadata["source"], d.metadata["page"]) for d in alone] == [("b.pdf", 1)] * 2


def test_chunks_that_cover_a_document_score_as_the_document(
    tiny_scanner: Scanner,
    documents: list[Document],
    first_stage: Callable[..., Any],
    full_scores: Callable[..., Any],
) -> None:
    chunks = chunks_of(documents, strip_whitespace=False, overlap=20)
    chunks += chunks[3:5]  # given twice, counted once
    found = SPScannerRetriever.from_retriever(first_stage(chunks[::-1]), scanner=tiny_scanner).invoke(QUERY)
    assert len(found) == 10
    for document in documents:
        texts = [d.page_content for d in documents]
        expected = full_scores(tiny_scanner, QUERY, document.page_content, texts)
        own = [d for d in found if d.metadata["source"] == document.metadata["source"]]
        logits = {
            (d.metadata["start_index"], d.metadata["end_index"]): d.metadata["spscanner_logit"] for d in own
        }
        assert logits.keys() == expected.keys()
        np.testing.assert_allclose([logits[s] for s in expected], list(expected.values()), atol=1e-4)


def test_a_sentence_across_two_chunks_is_one_result(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    text = "Rain fell. The council of the town signed the treaty in May. Then it stopped."
    chunks = [
        Document(text[:40], metadata={"source": "a", "start_index": 0}, id="c1"),
        Document(text[40:], metadata={"source": "a", "start_index": 40}, id="c2"),
    ]
    found = SPScannerRetriever.from_retriever(first_stage(chunks), scorer=word_scorer, k=1).invoke(
        "council treaty"
    )
    assert [d.page_content for d in found] == ["The council of the town signed the treaty in May."]
    assert (found[0].metadata["start_index"], found[0].metadata["end_index"]) == (11, 60)


def test_a_chunk_at_an_unknown_place_has_no_span(word_scorer: Any, first_stage: Callable[..., Any]) -> None:
    chunk = Document("A treaty. Rain fell.", metadata={"source": "a", "start_index": -1}, id="c")
    found = SPScannerRetriever.from_retriever(first_stage([chunk]), scorer=word_scorer).invoke("treaty")
    assert [(d.metadata["start_index"], d.metadata["end_index"]) for d in found] == [(-1, -1)] * 2
    assert [d.id for d in found] == ["c:0-9", "c:10-20"]
    whole = Document("Snow. A treaty. Rain fell.", metadata={"source": "a"}, id="w")
    found = SPScannerRetriever.from_retriever(
        first_stage([chunk]), documents=[whole], scorer=word_scorer, order="document"
    ).invoke("treaty")
    assert [d.id for d in found] == ["w:0-5", "w:6-15", "w:16-26"]


def test_chunks_of_documents_that_can_not_be_told_apart_keep_their_spans(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    one, other = "Rain fell in the north. It was cold.", "The treaty was signed by hand. So it was."
    chunks = [
        Document(one[:23], metadata={"start_index": 0}),
        Document(other[:30], metadata={"start_index": 0}),
        Document(other[31:], metadata={"start_index": 31}),
    ]
    found = SPScannerRetriever.from_retriever(first_stage(chunks), scorer=word_scorer).invoke("treaty")
    for result in found:
        span = slice(result.metadata["start_index"], result.metadata["end_index"])
        assert result.page_content in (one[span], other[span])
    assert len({d.id for d in found}) == len(found) == 3


@pytest.mark.parametrize("key", ["relevance_score", "score"])
def test_an_earlier_score_is_under_either_key(
    word_scorer: Any, documents: list[Document], first_stage: Callable[..., Any], key: str
) -> None:
    ranked = [Document(d.page_content, metadata={**d.metadata, key: 0.75}, id=d.id) for d in documents]
    found = SPScannerRetriever.from_retriever(
        first_stage(ranked), scorer=word_scorer, keep_retrieval_score=True
    ).invoke(QUERY)
    assert {d.metadata["spscanner_retrieval_score"] for d in found} == {0.75}
    assert found[0].metadata["relevance_score"] != 0.75


def test_a_first_stage_that_returns_no_documents_is_named(
    word_scorer: Any, first_stage: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError, match="first stage's documents: got str"):
        SPScannerRetriever.from_retriever(first_stage(["text"]), scorer=word_scorer).invoke(QUERY)
