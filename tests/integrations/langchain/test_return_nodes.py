"""Whole documents and pruned ones instead of sentences."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import ValidationError

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever
from tests.integrations.langchain.conftest import WordScorer

QUERY = "Who signed the treaty?"
SCORES = {"relevance_score", "spscanner_logit", "spscanner_document_score"}

Ask = Callable[[Sequence[Document], dict[str, Any]], list[Document]]


def retrieved(documents: Sequence[Document], options: dict[str, Any]) -> list[Document]:
    return SPScannerRetriever.from_documents(documents, scorer=WordScorer(), **options).invoke(QUERY)


def compressed(documents: Sequence[Document], options: dict[str, Any]) -> list[Document]:
    return SPScannerCompressor(scorer=WordScorer(), **options).compress_documents(documents, QUERY)


BOTH = pytest.mark.parametrize("ask", [retrieved, compressed])


@pytest.fixture
def chunks(documents: list[Document]) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=30, add_start_index=True)
    cut = splitter.split_documents(documents)
    return [d.model_copy(update={"id": f"c{number}"}) for number, d in enumerate(cut)]


@BOTH
def test_documents_are_reranked_by_their_best_sentence(ask: Ask, chunks: list[Document]) -> None:
    before = deepcopy(chunks)
    sentences = ask(chunks, {"k": None})
    found = ask(chunks, {"k": None, "return_nodes": "node"})
    assert chunks == before
    given = {chunk.id: chunk for chunk in chunks}
    assert {d.id for d in found} == given.keys()
    for document in found:
        own = given[document.id]
        assert document.page_content == own.page_content
        assert document.metadata.keys() - own.metadata.keys() == SCORES
        assert own.metadata.items() <= document.metadata.items()
        inside = [s.metadata for s in sentences if s.page_content in own.page_content]
        if inside:
            assert document.metadata["spscanner_logit"] >= max(m["spscanner_logit"] for m in inside)
    logits = [d.metadata["spscanner_logit"] for d in found]
    assert logits == sorted(logits, reverse=True)


@BOTH
def test_sentences_are_selected_before_documents(ask: Ask, chunks: list[Document]) -> None:
    options: dict[str, Any]
    for options in (
        {"k": 2},
        {"threshold": 0.6},
        {"max_tokens": 8, "count_tokens": lambda s: len(s.split())},
    ):
        texts = [sentence.page_content for sentence in ask(chunks, options)]
        assert texts
        for mode in ("node", "pruned"):
            found = ask(chunks, options | {"return_nodes": mode})
            assert 0 < len(found) < len(chunks)
        assert all(any(part in text for text in texts) for d in found for part in d.page_content.split("\n"))


@BOTH
def test_pruned_documents_keep_id_and_metadata(ask: Ask, documents: list[Document]) -> None:
    given = [Document(d.page_content, id=f"d{n}", metadata={"n": n}) for n, d in enumerate(documents)]
    found = ask(given, {"k": 2, "return_nodes": "pruned", "count_tokens": lambda text: len(text.split())})
    assert sorted(d.page_content for d in found) == [
        "Captain Moore signed the treaty on the island.",
        "The council signed a treaty with the northern towns.",
    ]
    for document in found:
        whole = given[document.metadata["n"]]
        assert document.id == whole.id
        saved = 1 - len(document.page_content) / len(whole.page_content)
        assert document.metadata["spscanner_character_reduction"] == pytest.approx(saved)
        words = 1 - len(document.page_content.split()) / len(whole.page_content.split())
        assert document.metadata["spscanner_token_reduction"] == pytest.approx(words)


@BOTH
def test_all_sentences_are_the_whole_document(ask: Ask, documents: list[Document]) -> None:
    found = ask(documents, {"k": None, "return_nodes": "pruned"})
    assert sorted(d.page_content for d in found) == sorted(d.page_content for d in documents)
    assert all(d.metadata["spscanner_character_reduction"] == 0 for d in found)
    assert not any("spscanner_token_reduction" in d.metadata for d in found)  # this scorer counts no tokens


def test_document_order(documents: list[Document]) -> None:
    for ask in (retrieved, compressed):
        found = ask(documents, {"return_nodes": "node", "order": "document"})
        assert [d.page_content for d in found] == [d.page_content for d in documents]


@BOTH
def test_an_unknown_mode_is_refused(ask: Ask, documents: list[Document]) -> None:
    with pytest.raises(ValidationError, match="return_nodes"):
        ask(documents, {"return_nodes": "nodes"})
