"""LlamaIndex's nodes for the held corpus, and those of an index."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from llama_index.core.constants import DATA_KEY
from llama_index.core.data_structs.data_structs import IndexGraph
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    Node,
    NodeWithScore,
    TextNode,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from typing_extensions import override

from llama_index.postprocessor.spscanner.answer import NodeAnswer
from llama_index.postprocessor.spscanner.nodes import (
    WholeDocuments,
    by_id,
    kind_of,
    read_found,
    read_nodes,
    source_id,
    source_texts,
    text_of,
)
from spscanner_rag.retrieval import Hit, Host, ReadText, check_json

_KINDS = (Document, ImageDocument, ImageNode, IndexNode, Node, TextNode)


@dataclass(frozen=True, eq=False)
class NodeHost(Host[NodeWithScore]):
    """How LlamaIndex's nodes are held; ``documents``, by id, and ``docstore`` have the whole texts of chunks."""

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
        sources = source_texts(map(self.document, items), self.documents, self.docstore)
        return read_nodes(items, sources, document_key=self.document_key)

    @override
    def finder(
        self, items: Sequence[NodeWithScore], texts: Sequence[ReadText[NodeWithScore]]
    ) -> Callable[[NodeWithScore], int | None]:
        # the index of the text that contains each document
        numbers = {run.source: number for number, text in enumerate(texts) for run in text.joined.runs}
        wholes = WholeDocuments([item.node for item in items])

        def find(scored: NodeWithScore) -> int | None:
            number = numbers.get(source_id(scored.node))
            whole = wholes.holding(scored.node) if number is None else None
            return number if whole is None else numbers.get(source_id(whole))

        return find

    @override
    def read(self, found: Sequence[NodeWithScore]) -> list[ReadText[NodeWithScore]]:
        filled = [scored for scored in found if text_of(scored.node)]
        return read_found(filled, self.documents.values(), self.docstore, document_key=self.document_key)

    @override
    def score(self, found: Sequence[NodeWithScore]) -> float | None:
        return max((scored.score for scored in found if scored.score is not None), default=None)

    @override
    def without(self, ids: Collection[str]) -> Self:
        kept = {name: document for name, document in self.documents.items() if name not in ids}
        return replace(self, documents=kept)

    @override
    def records(self, items: Sequence[NodeWithScore]) -> Iterable[Mapping[str, Any]]:
        yield from ({"role": "node", "node": _record(scored.node)} for scored in items)
        yield from ({"role": "document", "node": _record(whole)} for whole in self.documents.values())

    @override
    def restored(self, records: Sequence[Mapping[str, Any]]) -> tuple[Self, Sequence[NodeWithScore]]:
        held: dict[str, list[BaseNode]] = {"node": [], "document": []}
        for record in records:
            held[record["role"]].append(json_to_doc(record["node"]))
        documents = {document.node_id: document for document in held["document"]}
        return replace(self, documents=documents), [NodeWithScore(node=node) for node in held["node"]]


def as_items(nodes: Iterable[BaseNode], objects: Mapping[str, Any] | None = None) -> list[NodeWithScore]:
    """Nodes as a corpus holds them; index nodes get the object that ``objects`` has for them.

    Raises ``TypeError`` for anything else, and ``ValueError`` if two different ones have one id.
    """
    own = []
    for number, node in enumerate(nodes):
        if not isinstance(node, BaseNode):
            raise TypeError(f"nodes[{number}] is {kind_of(node)}; expected a Document or a node")
        if isinstance(node, IndexNode) and node.obj is None and objects and node.index_id in objects:
            node = node.model_copy(update={"obj": objects[node.index_id]})
        own.append(node)
    return [NodeWithScore(node=node) for node in by_id(own, "nodes").values()]


class FollowedAnswer(NodeAnswer):
    """Results in which an `IndexNode` with an object stays one: the retriever's base class asks the object."""

    @override
    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        node = text.items[hit.place.piece].node
        if not isinstance(node, IndexNode) or node.obj is None:
            super().add_sentence(hit, text)
        elif all(found.node is not node for found in self.found):
            self.add_piece(hit, text, hit.place.piece, None)


def _record(node: BaseNode) -> dict[str, Any]:
    if type(node) not in _KINDS:
        raise ValueError(
            f"node {node.node_id!r} is {type(node).__name__}; expected one of LlamaIndex's own node classes, "
            "which it can read from JSON: convert it before persist"
        )
    # Before LlamaIndex turns objects in it into dictionaries, which cannot be seen afterwards.
    check_json(node.metadata, "metadata", f"node {node.node_id!r}")
    record: dict[str, Any] = doc_to_json(node)
    if record[DATA_KEY].get("text_resource"):
        record[DATA_KEY].pop("text", None)  # there twice
    return record


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """All nodes of an index, from its document store or a vector store with text; else ``ValueError``."""
    stored = index.docstore.docs
    if not stored:
        store = getattr(index, "vector_store", None)
        if nodes := _nodes_of_store(store):
            return nodes
        keeper = f", and its {type(store).__name__} lists no nodes" if store is not None else ""
        raise ValueError(
            f"the docstore of this {type(index).__name__} is empty{keeper}; expected nodes: read the documents of "
            "what it retrieves with SPScannerRetriever(retriever=index.as_retriever(), documents=documents)"
        )
    names = _source_ids(index.index_struct)
    return list(stored.values()) if names is None else [stored[name] for name in names if name in stored]


def _nodes_of_store(store: BasePydanticVectorStore | None) -> list[BaseNode]:
    """All nodes of a vector store, such as Chroma's or Qdrant's; none if it keeps no text or cannot list them."""
    if store is None or not store.stores_text:
        return []
    try:
        options: dict[str, Any] = {"node_ids": None}
        if "limit" in inspect.signature(store.get_nodes).parameters:
            options["limit"] = 2**31 - 1  # Qdrant's default is 9,999
        nodes = store.get_nodes(**options)
    except Exception:  # many stores have no such method, or want ids or filters
        return []
    return [node for node in nodes or () if isinstance(node, BaseNode)]


def _source_ids(struct: object) -> list[str] | None:
    """Ids of the nodes of one index, since several may share a document store, without those that it made."""
    if isinstance(struct, IndexDocumentSummary):
        return list(struct.node_id_to_summary_id)
    if isinstance(struct, IndexGraph):  # a tree, in which a node with children is a summary of these
        children = struct.node_id_to_children_ids
        return [name for name in struct.all_nodes.values() if not children.get(name)]
    for attribute in ("nodes_dict", "all_nodes", "nodes", "node_ids"):
        ids = getattr(struct, attribute, None)
        if ids is not None:
            return list(ids.values() if isinstance(ids, Mapping) else ids)
    return None


NodeFilter = Callable[[BaseNode], bool]


def node_filter(filters: MetadataFilters) -> NodeFilter:
    """A function that is true if a node's metadata pass."""
    parts = [
        node_filter(part) if isinstance(part, MetadataFilters) else _single(part) for part in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return lambda node: not parts or any(part(node) for part in parts)
    if filters.condition == FilterCondition.NOT:
        return lambda node: not any(part(node) for part in parts)
    return lambda node: all(part(node) for part in parts)


def _single(part: MetadataFilter) -> NodeFilter:
    # LlamaIndex's function takes a key to look metadata up by; here the metadata are their own key.
    lookup: Callable[[Any], Any] = build_metadata_filter_fn(
        lambda metadata: metadata,  # type: ignore[arg-type, return-value]
        MetadataFilters(filters=[part]),
    )
    return lambda node: bool(lookup(node.metadata))
