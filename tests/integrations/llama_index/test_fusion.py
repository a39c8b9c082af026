"""Fusing retrievers and evaluators of LlamaIndex recognize what several queries find."""

from typing import Any

from llama_index.core.schema import BaseNode, Document

from llama_index.retrievers.spscanner import SPScannerRetriever

QUERY = "Who signed the treaty in May?"
VARIANTS = "Which captain signed the treaty?\nWhen was the treaty signed by the keeper?"


def test_nodes_are_independent(documents: list[Document], chunks: list[BaseNode], word_scorer: Any) -> None:
    stage = SPScannerRetriever.from_nodes(chunks, scorer=word_scorer, return_nodes="node")
    for held, options in (
        (documents, {}),
        (documents, {"keep_retrieval_score": True, "retriever": stage}),
        (chunks, {"return_nodes": "node"}),
    ):
        retriever = SPScannerRetriever(held, scorer=word_scorer, **options)
        one, two = ({n.node_id: n for n in retriever.retrieve(q)} for q in (QUERY, "Did the bell ring?"))
        assert one.keys() == two.keys()
        assert all(one[name].node == two[name].node for name in one)
        assert all(one[name].node.hash == two[name].node.hash for name in one)
        assert {name: found.score for name, found in one.items()} != {n: f.score for n, f in two.items()}
