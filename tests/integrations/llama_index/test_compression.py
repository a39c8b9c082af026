"""The tokens kept and read, on request: with each result, and no part of its node."""

from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever

QUERY = "Who signed the treaty?"
TEXTS = ["He signed the treaty in May. It rained.", "She wrote a letter. The council met."]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("kind", ["sentence", "node", "pruned"])
def test_every_result_has_the_tokens_of_all(word_scorer: Any, kind: Any) -> None:
    documents = [Document(text=text, id_=f"d{number}") for number, text in enumerate(TEXTS)]
    options: dict[str, Any] = {"scorer": word_scorer, "return_nodes": kind, "count_tokens": words}
    read = sum(map(words, TEXTS))
    for keep in (False, True):
        post = SPScannerPostprocessor(**options, top_n=1, keep_compression=keep)
        retriever = SPScannerRetriever(documents, **options, similarity_top_k=1, keep_compression=keep)
        for found in (post.postprocess_nodes(documents, query_str=QUERY), retriever.retrieve(QUERY)):
            (result,) = found
            kept = words(result.node.get_content()) if keep else None
            assert (result.tokens_kept, result.tokens_read) == (kept, read if keep else None)
            assert result.scores().get("spscanner_tokens_read") == (read if keep else None)
            assert not any(key.startswith("spscanner_tokens") for key in result.node.metadata)


def test_what_is_read_within_a_whole_document_counts_whole(word_scorer: Any) -> None:
    document = Document(text=" ".join(TEXTS), id_="d")
    chunk = SentenceSplitter(chunk_size=16, chunk_overlap=0).get_nodes_from_documents([document])[0]
    options: dict[str, Any] = {"scorer": word_scorer, "count_tokens": words, "keep_compression": True}
    alone = SPScannerPostprocessor(**options).postprocess_nodes([chunk], query_str=QUERY)
    within = SPScannerPostprocessor(**options, documents=[document]).postprocess_nodes(
        [chunk], query_str=QUERY
    )
    assert alone[0].tokens_read == words(chunk.get_content())
    assert within[0].tokens_read == words(document.text)
