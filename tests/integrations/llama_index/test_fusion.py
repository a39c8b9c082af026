"""Fusing retrievers and evaluators of LlamaIndex recognize what several queries find."""

from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import BaseNode, Document, NodeWithScore

from llama_index.retrievers.spscanner import SPScannerRetriever

QUERY = "Who signed the treaty in May?"
VARIANTS = "Which captain signed the treaty?\nWhen was the treaty signed by the keeper?"
MODES = ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"]


class Variants(CustomLLM):
    """Answers everything with two other queries."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=VARIANTS)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


def fused(retriever: SPScannerRetriever, mode: str, use_async: bool = False) -> list[NodeWithScore]:
    fusion = QueryFusionRetriever(
        [retriever], llm=Variants(), mode=mode, num_queries=3, similarity_top_k=100, use_async=use_async
    )
    return fusion.retrieve(QUERY)


@pytest.mark.parametrize("return_nodes", ["sentence", "node"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("use_async", [False, True])
def test_query_fusion(
    chunks: list[BaseNode], word_scorer: Any, mode: str, return_nodes: Any, use_async: bool
) -> None:
    retriever = SPScannerRetriever.from_nodes(chunks, scorer=word_scorer, return_nodes=return_nodes)
    every = {found.node_id: found.score for found in retriever.retrieve(QUERY)}
    found = fused(retriever, mode, use_async)
    assert {node.node_id for node in found} == every.keys()
    assert len(found) == len(every)  # each is fused with itself
    assert [node.score for node in found] == sorted((node.score for node in found), reverse=True)
    results = [retriever.retrieve(query) for query in [QUERY, *VARIANTS.splitlines()]]
    if mode == "simple":
        for node in found:
            assert node.score == max(n.score for own in results for n in own if n.node_id == node.node_id)
    elif mode == "reciprocal_rerank":
        ranks = [[n.node_id for n in own] for own in results]
        for node in found:
            assert node.score == pytest.approx(sum(1 / (60 + own.index(node.node_id)) for own in ranks))
    else:  # a third of the sum of three scores between 0 and 1
        assert found[0].score > 0.5


def test_nothing_that_depends_on_the_question_is_in_a_node(
    documents: list[Document], chunks: list[BaseNode], word_scorer: Any
) -> None:
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
