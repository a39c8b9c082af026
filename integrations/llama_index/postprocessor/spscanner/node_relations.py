"""What a LlamaIndex node is: its text, its document, its relations."""

from collections.abc import Iterable

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
)


def text_of(node: BaseNode) -> str:
    """The text of a node without its metadata, which is empty for an image."""
    if isinstance(node, ImageNode | ImageDocument):
        return ""
    return node.get_content(metadata_mode=MetadataMode.NONE) or ""


def related(node: BaseNode, relationship: NodeRelationship) -> RelatedNodeInfo | None:
    """The related node of a kind, or None unless there is exactly one."""
    info = node.relationships.get(relationship)
    return info if isinstance(info, RelatedNodeInfo) else None


def source_id(node: BaseNode) -> str:
    """Id of the document that a node was cut from, else of the node itself."""
    source = related(node, NodeRelationship.SOURCE)
    return node.node_id if source is None else source.node_id


def with_scores(nodes: Iterable[NodeWithScore | BaseNode]) -> list[NodeWithScore]:
    """Wrap bare nodes in a `NodeWithScore` without a score."""
    scored_nodes = []
    for number, node in enumerate(nodes):
        if isinstance(node, NodeWithScore):
            scored_nodes.append(node)
        elif isinstance(node, BaseNode):
            scored_nodes.append(NodeWithScore(node=node))
        else:
            raise TypeError(
                f"nodes[{number}] is {kind_of(node)}; expected a NodeWithScore or a"
                " node"
            )
    return scored_nodes


def nodes_by_id(
    nodes: Iterable[BaseNode], name: str = "documents"
) -> dict[str, BaseNode]:
    """The nodes by their ids.

    ``ValueError`` if two different ones have the same id.
    """
    node_of_id: dict[str, BaseNode] = {}
    for node in nodes:
        earlier = node_of_id.setdefault(node.node_id, node)
        if earlier is not node and not _are_equal(earlier, node):
            raise ValueError(
                f"{name}: got two different ones with the id {node.node_id!r}; expected"
                " a different id for each"
            )
    return node_of_id


def _are_equal(first: BaseNode, second: BaseNode) -> bool:
    return text_of(first) == text_of(second) and first.metadata == second.metadata


def kind_of(value: object) -> str:
    """What a value is that is not a node, for error messages."""
    if hasattr(value, "page_content"):
        return (
            "a LangChain Document (convert it: Document(text=it.page_content,"
            " metadata=it.metadata))"
        )
    return type(value).__name__
