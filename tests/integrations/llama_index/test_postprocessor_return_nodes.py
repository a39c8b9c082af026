"""Whole nodes and pruned nodes instead of sentences, and the scores of results."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)

from llama_index.postprocessor.spscanner import ScannedNode, SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from tests.integrations.llama_index.conftest import QUERY, reranked


def scored(nodes: Sequence[BaseNode]) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=node, score=0.5 + n / 100) for n, node in enumerate(nodes)
    ]


def test_pruned_nodes_are_copies_without_what_holds_for_the_whole_text(
    chunks: list[BaseNode],
) -> None:
    given = scored(chunks)
    before = deepcopy(given)
    options: dict[str, Any] = {"top_n": 4, "return_nodes": "pruned"}
    by_id = {node.node_id: node for node in chunks}
    for result in reranked(given, **options):
        node, original = result.node, by_id[result.node_id]
        assert type(node) is type(original)
        assert node.relationships == original.relationships
        assert node.start_char_idx is None
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert "spscanner" not in node.get_content(metadata_mode=mode)
        node.metadata["tags"]["year"].append("changed")
        node.relationships.clear()
    assert [n.model_dump() for n in given] == [n.model_dump() for n in before]


def test_scores_are_in_the_metadata_of_the_result_only(
    chunks: list[BaseNode], word_scorer: Any
) -> None:
    post = SPScannerPostprocessor(scorer=word_scorer, keep_retrieval_score=True)
    for result in post.postprocess_nodes(scored(chunks), query_str=QUERY):
        assert isinstance(result, ScannedNode)
        assert result.metadata == {
            **result.node.metadata,
            "spscanner_logit": result.logit,
            "spscanner_probability": result.probability,
            "spscanner_document_score": result.document_score,
            "spscanner_retrieval_score": result.retrieval_score,
        }
        own = {"spscanner_id"}
        assert {
            key for key in result.node.metadata if key.startswith("spscanner")
        } == own


def test_a_result_is_saved_with_its_scores(chunks: list[BaseNode]) -> None:
    result = reranked(scored(chunks))[0]
    data = json.loads(json.dumps(result.to_dict()))
    assert data["logit"] == result.logit
    plain = NodeWithScore(node=result.node, score=result.score)
    assert NodeWithScore.from_dict({**data, "node": result.node}) == plain


def test_ids_do_not_depend_on_random_ids_of_documents() -> None:
    texts = ["He signed the treaty. It rained.", "He signed the treaty. The bell rang."]

    def ids(cut: bool) -> list[str]:
        documents = [Document(text=text, metadata={"title": "a"}) for text in texts]
        if cut:
            nodes: list[BaseNode] = []
            for document in documents:
                source = {NodeRelationship.SOURCE: document.as_related_node_info()}
                nodes += [
                    TextNode(
                        text=text,
                        start_char_idx=start,
                        end_char_idx=start + len(text),
                        relationships=source,
                    )
                    for start, text in (
                        (0, document.text[:21]),
                        (22, document.text[22:]),
                    )
                ]
        else:
            nodes = list(documents)
        found = reranked(nodes)
        assert [n.node_id for n in found] == [
            n.node.metadata["spscanner_id"] for n in found
        ]
        return sorted(n.node_id for n in found)

    first = ids(cut=False)
    assert len(set(first)) == 4  # equal sentences of two documents are two
    assert ids(cut=False) == first
    assert ids(cut=True) == first


def test_nodes_are_independent(
    documents: list[Document], chunks: list[BaseNode], word_scorer: Any
) -> None:
    stage = SPScannerRetriever.from_nodes(
        chunks, scorer=word_scorer, return_nodes="node"
    )
    for held, options in (
        (documents, {}),
        (documents, {"keep_retrieval_score": True, "retriever": stage}),
        (chunks, {"return_nodes": "node"}),
    ):
        retriever = SPScannerRetriever(held, scorer=word_scorer, **options)
        one, two = (
            {n.node_id: n for n in retriever.retrieve(q)}
            for q in (QUERY, "Did the bell ring?")
        )
        assert one.keys() == two.keys()
        assert all(one[name].node == two[name].node for name in one)
        assert all(one[name].node.hash == two[name].node.hash for name in one)
        assert {name: found.score for name, found in one.items()} != {
            n: f.score for n, f in two.items()
        }
