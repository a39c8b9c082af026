"""The nodes of a LlamaIndex index."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from llama_index.core.data_structs.data_structs import IndexGraph
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode

_ALL_NODES = 2**31 - 1  # Qdrant's default is 9,999


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """All nodes of an index.

    They are in its document store, or in a vector store that keeps text, else
    ``ValueError``.
    """
    stored = index.docstore.docs
    if stored:
        names = _source_ids(index.index_struct)
        if names is None:
            return list(stored.values())
        return [stored[name] for name in names if name in stored]
    store = getattr(index, "vector_store", None)
    nodes = _nodes_of_vector_store(store)
    if not nodes:
        keeper = ""
        if store is not None:
            keeper = f", and its {type(store).__name__} lists no nodes"
        raise ValueError(
            f"the docstore of this {type(index).__name__} is empty{keeper}; expected"
            " nodes: to read the documents that it retrieves, use"
            " SPScannerRetriever(retriever=index.as_retriever(), documents=documents)"
        )
    return nodes


def _nodes_of_vector_store(store: Any) -> list[BaseNode]:  # noqa: ANN401
    """The nodes that a vector store lists, none if it cannot."""
    if store is None or not store.stores_text:
        return []
    # Many stores have no such method, or want ids or filters.
    with suppress(Exception):
        options: dict[str, int] = {}
        if "limit" in inspect.signature(store.get_nodes).parameters:
            options["limit"] = _ALL_NODES
        nodes = store.get_nodes(node_ids=None, **options)
        return [node for node in nodes if isinstance(node, BaseNode)]
    return []


def _source_ids(struct: object) -> list[str] | None:
    """Ids of one index's nodes in a shared store, without those that it generated.

    None if it lists none.
    """
    if isinstance(struct, IndexDocumentSummary):
        return list(struct.node_id_to_summary_id)
    if isinstance(struct, IndexGraph):
        # A tree, in which a node with children is their summary.
        children = struct.node_id_to_children_ids
        return [name for name in struct.all_nodes.values() if not children.get(name)]
    for attribute in ("nodes_dict", "all_nodes", "nodes", "node_ids"):
        ids = getattr(struct, attribute, None)
        if isinstance(ids, Mapping):
            return list(ids.values())
        if ids is not None:
            return list(ids)
    return None
