"""The postprocessor's results for every kind of node; it changes none of them."""

from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from tests.integrations.hosts import Uncounted
from tests.integrations.llama_index.conftest import QUERY, reranked


def scored(nodes: list[BaseNode]) -> list[NodeWithScore]:
    scores = [0.0, None, 0.7]
    return [
        NodeWithScore(node=node, score=scores[i % 3]) for i, node in enumerate(nodes)
    ]


def test_own_metadata_stays_out_of_what_models_read(
    chunks: list[BaseNode], word_scorer: Any
) -> None:
    post = SPScannerPostprocessor(
        scorer=word_scorer, top_n=2, keep_retrieval_score=True
    )
    for sentence in post.postprocess_nodes(scored(chunks[:1]), query_str=QUERY):
        node = sentence.node
        assert "spscanner_id" in node.metadata
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert "spscanner" not in node.get_content(metadata_mode=mode)
            assert "tags" not in node.get_content(metadata_mode=mode)
            assert "title" in node.get_content(metadata_mode=mode)


def test_templates_and_separators_of_the_node_are_kept() -> None:
    node = TextNode(
        text="He signed the treaty. It rained.",
        metadata={"a": 1, "b": 2},
        metadata_template="{key} = {value}",
        metadata_separator=" | ",
        text_template="[{metadata_str}] {content}",
    )
    found = reranked([node], top_n=1)
    assert (
        found[0].node.get_content(metadata_mode=MetadataMode.LLM)
        == "[a = 1 | b = 2] He signed the treaty."
    )


def test_nodes_without_text_are_skipped(word_scorer: Any) -> None:
    nodes = [
        ImageNode(image_url="https://example.org/a.png", id_="image"),
        ImageNode(
            text="He signed the treaty.",
            image_url="https://example.org/a.png",
            id_="captioned",
        ),
        ImageDocument(
            text="He signed the treaty.", image=b"aGk=", id_="image document"
        ),
        Node(image_resource=MediaResource(data=b"x"), id_="resource"),
        TextNode(text="", id_="empty"),
        TextNode(text=" \n ", id_="white"),
        Document(text="", id_="empty document"),
    ]
    post = SPScannerPostprocessor(scorer=word_scorer)
    assert (
        post.postprocess_nodes(
            [NodeWithScore(node=node) for node in nodes], query_str=QUERY
        )
        == []
    )
    nodes.insert(3, TextNode(text="The captain signed.", id_="text"))
    found = post.postprocess_nodes(
        [NodeWithScore(node=node) for node in nodes], query_str=QUERY
    )
    assert [node.node.get_content() for node in found] == ["The captain signed."]


def test_other_nodes_with_text_are_read() -> None:
    nodes = [
        Document(text="The captain signed.", id_="document"),
        Node(text_resource=MediaResource(text="The treaty was long."), id_="node"),
        IndexNode(text="It rained.", index_id="other", id_="index"),
    ]
    found = reranked([NodeWithScore(node=node) for node in nodes])
    assert {node.node.source_node.node_id for node in found} == {
        "document",
        "node",
        "index",
    }
    assert {type(node.node) for node in found} == {TextNode}


def test_anything_else_is_refused_by_name() -> None:
    other = SimpleNamespace(page_content="Anne signed.", metadata={})
    for refuses in (
        reranked,
        SPScannerRetriever.from_nodes,
        SPScannerRetriever.from_documents,
    ):
        with pytest.raises(
            TypeError,
            match=r"nodes\[0\] is a LangChain Document \(convert it: Document\(",
        ):
            refuses([other])  # type: ignore[operator]
    with pytest.raises(
        TypeError, match=r"nodes\[1\] is str; expected a NodeWithScore or a node"
    ):
        reranked([TextNode(text="A."), "text"])


def test_one_node_given_twice_is_read_once() -> None:
    node = TextNode(text="He signed the treaty. It rained.", id_="a")
    nodes = [
        NodeWithScore(node=node, score=0.2),
        NodeWithScore(node=node.model_copy(), score=0.9),
    ]
    found = reranked(nodes, keep_retrieval_score=True)
    assert [n.node.node_id for n in found] == ["a:0-21", "a:22-32"]
    assert {n.retrieval_score for n in found} == {0.9}


def test_two_texts_with_one_id_are_both_read() -> None:
    nodes = [
        TextNode(text=text, id_="a")
        for text in ("He signed the treaty.", "The captain slept in.")
    ]
    found = reranked(nodes)
    assert {n.node.get_content() for n in found} == {
        "He signed the treaty.",
        "The captain slept in.",
    }
    assert len({n.node.node_id for n in found}) == 2


def test_of_equal_sentences_of_two_nodes_the_better_one_counts() -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    nodes = [
        TextNode(
            text=text,
            start_char_idx=at,
            end_char_idx=at + len(text),
            relationships=source,
        )
        for at, text in ((0, "He slept. It rained."), (10, "It rained. They left."))
    ]
    found = reranked(nodes, scorer=Uncounted(), group_by="node", order="document")
    assert [(n.node_id, n.logit) for n in found] == [
        ("d:0-9", 0),
        ("d:10-20", 0),
        ("d:21-31", -1),
    ]


def test_relationships_that_are_lists_are_no_obstacle() -> None:
    infos = [RelatedNodeInfo(node_id="x"), RelatedNodeInfo(node_id="y")]
    node = TextNode(
        text="He signed the treaty.",
        id_="a",
        relationships=dict.fromkeys(NodeRelationship, infos),
    )
    (found,) = reranked([node])
    assert found.node.source_node.node_id == "a"


def test_sentence_nodes_say_where_they_come_from(chunks: list[BaseNode]) -> None:
    by_id = {node.node_id: node for node in chunks}
    found = reranked(scored(chunks), top_n=3)
    assert (
        found[0].node.get_content() == "He signed the treaty with the captain in May."
    )
    assert (
        found[0].node.node_id
        == f"lighthouse:{found[0].node.start_char_idx}-{found[0].node.end_char_idx}"
    )
    for sentence in found:
        node = sentence.node
        assert type(node) is TextNode
        assert node.source_node.node_id in ("lighthouse", "harbour")
        parent = by_id[node.parent_node.node_id]
        assert node.get_content() in parent.get_content()
        assert node.parent_node.hash == parent.hash
        assert node.metadata.items() >= parent.metadata.items()


@pytest.mark.parametrize("budget", [40, 160, 400])
@pytest.mark.parametrize(
    "options",
    [{"merge_adjacent": True}, {"context_sentences": 1}, {"return_nodes": "pruned"}],
)
def test_a_budget_holds_for_what_is_sent(
    chunks: list[BaseNode], word_scorer: Any, budget: int, options: dict[str, Any]
) -> None:
    """With metadata, as a response synthesizer writes it into the prompt."""
    for number, chunk in enumerate(chunks):
        chunk.metadata["path"] = "folder " * 20 + str(number)
        chunk.metadata["hidden"] = "x " * 500
        chunk.excluded_llm_metadata_keys = ["hidden"]

    def count(text: str) -> int:
        return len(text.split())

    def sent(found: list[NodeWithScore]) -> int:
        prompt = "\n\n".join(
            one.node.get_content(metadata_mode=MetadataMode.LLM) for one in found
        )
        return count(prompt)

    def kept(**fields: Any) -> list[NodeWithScore]:
        post = SPScannerPostprocessor(
            scorer=word_scorer, top_n=None, count_tokens=count, **options | fields
        )
        return post.postprocess_nodes(chunks, query_str=QUERY)

    found, every = kept(max_tokens=budget), kept()
    assert sent(found) <= budget
    if sent(every) <= budget:
        assert found == every
    elif budget >= 160:
        assert sent(found) >= budget / 2
        best = max(every, key=lambda one: one.score or 0)
        assert max(one.score or 0 for one in found) == best.score
