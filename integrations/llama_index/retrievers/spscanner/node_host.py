"""How LlamaIndex's nodes are held between queries."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from llama_index.core.constants import DATA_KEY
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from typing_extensions import override

from llama_index.postprocessor.spscanner.node_relations import (
    kind_of,
    nodes_by_id,
    source_id,
)
from llama_index.postprocessor.spscanner.read_nodes import read_nodes
from llama_index.postprocessor.spscanner.whole_documents import WholeDocuments
from spscanner_rag.retrieval import Host, ReadText, check_json


@dataclass(frozen=True, eq=False)
class NodeHost(Host[NodeWithScore]):
    """How LlamaIndex's nodes are held.

    Parameters
    ----------
    documents : mapping
        Whole documents by id.
    docstore : BaseDocumentStore, optional
        Has further whole documents.
    document_key : str or None
        That of the retriever.
    """

    documents: Mapping[str, BaseNode]
    docstore: BaseDocumentStore | None
    document_key: str | None

    framework = "llama-index"
    items_name = "nodes with scores"

    @override
    def key(self, item: NodeWithScore) -> str:
        return item.node.node_id

    @override
    def document(self, item: NodeWithScore) -> str:
        return source_id(item.node)

    @override
    def join(self, items: Sequence[NodeWithScore]) -> list[ReadText[NodeWithScore]]:
        return read_nodes(
            items, self.documents, self.docstore, document_key=self.document_key
        )

    @override
    def finder(
        self, items: Sequence[NodeWithScore], texts: Sequence[ReadText[NodeWithScore]]
    ) -> Callable[[NodeWithScore], int | None]:
        text_of_source: dict[object, int] = {}
        for number, text in enumerate(texts):
            for run in text.joined.runs:
                text_of_source[run.source] = number
        # Each node is tied to its whole document by now.
        tied_items = texts[0].items if texts else ()
        tied_nodes = [item.node for item in tied_items]
        wholes = WholeDocuments([*self.documents.values(), *tied_nodes])
        return lambda scored: text_of_source.get(source_id(wholes.tied(scored).node))

    @override
    def score(self, items: Sequence[NodeWithScore]) -> float | None:
        scores = [scored.score for scored in items if scored.score is not None]
        return max(scores, default=None)

    @override
    def without(self, ids: Collection[str]) -> Self:
        remaining = dict(self.documents)
        for document_id in ids:
            remaining.pop(document_id, None)
        return replace(self, documents=remaining)

    @override
    def records(self, items: Sequence[NodeWithScore]) -> Iterable[Mapping[str, Any]]:
        for scored in items:
            yield {"role": "node", "node": _record(scored.node)}
        for document in self.documents.values():
            yield {"role": "document", "node": _record(document)}

    @override
    def restored(
        self, records: Sequence[Mapping[str, Any]]
    ) -> tuple[Self, Sequence[NodeWithScore]]:
        nodes_of_role: dict[str, list[BaseNode]] = {"node": [], "document": []}
        for record in records:
            nodes_of_role[record["role"]].append(json_to_doc(record["node"]))
        documents = {node.node_id: node for node in nodes_of_role["document"]}
        items = [NodeWithScore(node=node) for node in nodes_of_role["node"]]
        return replace(self, documents=documents), items


def items_of(
    nodes: Iterable[BaseNode], objects: Mapping[str, Any] | None = None
) -> list[NodeWithScore]:
    """Wrap nodes to hold them, of which different ones need different ids.

    Parameters
    ----------
    nodes : iterable of BaseNode
        The nodes.
    objects : mapping, optional
        The objects of index nodes, by ``index_id``.
    """
    complete_nodes = []
    for number, node in enumerate(nodes):
        if not isinstance(node, BaseNode):
            raise TypeError(
                f"nodes[{number}] is {kind_of(node)}; expected a Document or a node"
            )
        complete_nodes.append(_with_object(node, objects or {}))
    unique_nodes = nodes_by_id(complete_nodes, "nodes")
    return [NodeWithScore(node=node) for node in unique_nodes.values()]


def _with_object(node: BaseNode, objects: Mapping[str, Any]) -> BaseNode:
    """An index node with its object if that is known, or the node as it is."""
    if not isinstance(node, IndexNode) or node.obj is not None:
        return node
    if node.index_id not in objects:
        return node
    return node.model_copy(update={"obj": objects[node.index_id]})


def _record(node: BaseNode) -> dict[str, Any]:
    """A node as an object of JSON values."""
    if type(node).__module__ != BaseNode.__module__:
        raise ValueError(
            f"node {node.node_id!r} is {type(node).__name__}; expected one of"
            " LlamaIndex's own node classes, which it can read from JSON: convert it"
            " before persist"
        )
    # Checked first: LlamaIndex turns objects in metadata into dictionaries, which
    # cannot be noticed afterwards.
    check_json(node.metadata, "metadata", f"node {node.node_id!r}")
    record: dict[str, Any] = doc_to_json(node)
    if record[DATA_KEY].get("text_resource"):
        record[DATA_KEY].pop("text", None)  # the same text again
    return record
