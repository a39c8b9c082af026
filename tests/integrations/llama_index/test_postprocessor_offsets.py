"""Spans and scores are those of the whole document, however the text was cut."""

from typing import Any

import pytest
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    TokenTextSplitter,
)
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from spscanner_rag.scanner import Scanner
from tests.integrations.llama_index.conftest import QUERY, reranked

TOLERANCE = 1e-4


def chunked(document: Document, kind: str, size: int, overlap: int) -> list[BaseNode]:
    splitter = {"sentence": SentenceSplitter, "token": TokenTextSplitter}[kind](
        chunk_size=size, chunk_overlap=min(overlap, size - 1), include_metadata=False
    )
    return splitter.get_nodes_from_documents([document])


def scores_of(
    found: list[NodeWithScore],
) -> dict[tuple[int | None, int | None], float | None]:
    return {(n.node.start_char_idx, n.node.end_char_idx): n.score for n in found}


@pytest.mark.parametrize("kind", ["sentence", "token"])
@pytest.mark.parametrize(("size", "overlap"), [(20, 0), (20, 8), (64, 16)])
@pytest.mark.parametrize("at_hand", ["documents", "docstore"])
def test_scores_equal_those_of_the_whole_text_when_it_is_at_hand(
    documents: list[Document],
    tiny_scanner: Scanner,
    kind: str,
    size: int,
    overlap: int,
    at_hand: str,
) -> None:
    text = documents[0].text
    expected = {
        (s.start, s.end): s.score for s in tiny_scanner.scan(QUERY, text).sentences
    }
    nodes = chunked(documents[0], kind, size, overlap)
    store = SimpleDocumentStore()
    store.add_documents(documents)
    whole: dict[str, Any] = {at_hand: documents if at_hand == "documents" else store}

    post = SPScannerPostprocessor(scanner=tiny_scanner, top_n=None, **whole)
    found = scores_of(post.postprocess_nodes(nodes[::-1], query_str=QUERY))
    assert found == pytest.approx(expected, abs=TOLERANCE)

    some = [node for i, node in enumerate(nodes) if i % 2]
    found = scores_of(post.postprocess_nodes(some, query_str=QUERY))
    assert found == pytest.approx(
        {span: expected[span] for span in found}, abs=TOLERANCE
    )
    covered = [(node.start_char_idx, node.end_char_idx) for node in some]
    if all(start is not None for start, _ in covered):
        assert set(found) == {
            span
            for span in expected
            if any(span[0] < end and start < span[1] for start, end in covered)
        }

    retriever = SPScannerRetriever.from_nodes(
        nodes, scanner=tiny_scanner, similarity_top_k=None, **whole
    )
    assert scores_of(retriever.retrieve(QUERY)) == pytest.approx(
        expected, abs=TOLERANCE
    )


def test_a_docstore_with_all_chunks_is_the_document(
    documents: list[Document], tiny_scanner: Scanner
) -> None:
    nodes = chunked(documents[0], "sentence", 30, 0)
    assert len(nodes) > 3
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    expected = scores_of(
        SPScannerRetriever(nodes, scanner=tiny_scanner, similarity_top_k=None).retrieve(
            QUERY
        )
    )
    post = SPScannerPostprocessor(scanner=tiny_scanner, top_n=None, docstore=store)
    found = scores_of(post.postprocess_nodes([nodes[-1]], query_str=QUERY))
    assert found
    assert found == pytest.approx(
        {span: expected[span] for span in found}, abs=TOLERANCE
    )


def test_a_docstore_with_a_gap_does_not(
    documents: list[Document], word_scorer: Any
) -> None:
    nodes = chunked(documents[0], "sentence", 30, 0)
    store = SimpleDocumentStore()
    store.add_documents([nodes[0], *nodes[3:]])
    post = SPScannerPostprocessor(scorer=word_scorer, top_n=None, docstore=store)
    found = post.postprocess_nodes([nodes[-1]], query_str=QUERY)
    assert found
    for n in found:
        assert (
            documents[0].text[n.node.start_char_idx : n.node.end_char_idx]
            == n.node.text
        )


@pytest.mark.parametrize("parser", ["hierarchical", "two splitters"])
def test_chunks_of_chunks_have_offsets_in_documents_only(
    documents: list[Document], parser: str
) -> None:
    # Both count start_char_idx in the larger chunk, but name the document as SOURCE.
    if parser == "hierarchical":
        parts = HierarchicalNodeParser.from_defaults(
            chunk_sizes=[60, 25], chunk_overlap=0
        )
        nodes = parts.get_nodes_from_documents(documents[:1])
    else:
        large = chunked(documents[0], "sentence", 60, 0)
        nodes = SentenceSplitter(
            chunk_size=25, chunk_overlap=0
        ).get_nodes_from_documents(large)
    leaves = [node for node in nodes if not node.child_nodes]
    text = documents[0].text
    assert any(
        text[n.start_char_idx : n.end_char_idx] != n.get_content() for n in leaves
    )
    for whole in (None, documents):
        found = reranked(leaves, top_n=None, documents=whole)
        assert found
        for n in found:
            start = n.node.start_char_idx
            assert (start is None and not whole) or text[
                start : n.node.end_char_idx
            ] == n.node.text
