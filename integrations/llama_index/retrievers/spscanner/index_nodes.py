"""The nodes of a LlamaIndex index."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """All nodes of an index; raises ``ValueError`` if its document store is empty."""
    stored = index.docstore.docs
    if not stored:
        store = getattr(index, "vector_store", None)
        keeper = f", whose {type(store).__name__} may keep the text itself" if store is not None else ""
        raise ValueError(
            f"the docstore of this {type(index).__name__} is empty{keeper}; expected nodes: use "
            "SPScannerRetriever.from_documents(documents) or .from_nodes(nodes), or build the index with "
            "store_nodes_override=True, or scan what it retrieves with "
            "SPScannerRetriever(retriever=index.as_retriever())"
        )
    names = _node_ids(index.index_struct)
    return list(stored.values()) if names is None else [stored[name] for name in names if name in stored]


def _node_ids(struct: object) -> list[str] | None:
    """Ids of the nodes of one index, since several may share a document store."""
    for attribute in ("nodes_dict", "all_nodes", "nodes", "node_ids"):
        ids = getattr(struct, attribute, None)
        if ids is not None:
            return list(ids.values() if isinstance(ids, Mapping) else ids)
    return None
