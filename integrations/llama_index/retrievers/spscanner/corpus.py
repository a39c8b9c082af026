"""The documents that a retriever holds, joined to texts once."""

import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.nodes import Reading, read_nodes, source_id
from llama_index.postprocessor.spscanner.sources import check_documents, source_texts


@dataclass(frozen=True, slots=True)
class Held:
    """The texts of all documents, and the number of the text that each document stands in."""

    reading: Reading
    number: Mapping[str, int]

    def covers(self, name: str) -> bool:
        """Whether the nodes of a document stand wherever its text is not white."""
        if name not in self.number:
            return True
        joined = self.reading.texts[self.number[name]]
        run = next(run for run in joined.runs if run.source == name)
        end = run.start
        for placed in joined.placed:
            if placed.start >= run.end:
                break
            if joined.text[end : max(end, placed.start)].strip():
                return False
            end = max(end, placed.end)
        return not joined.text[end : run.end].strip()


def _held(nodes: Sequence[BaseNode], sources: Mapping[Hashable, str], document_key: str | None) -> Held:
    reading = read_nodes([NodeWithScore(node=node) for node in nodes], sources, "document", document_key)
    numbers = {str(run.source): number for number, text in enumerate(reading.texts) for run in text.runs}
    return Held(reading, numbers)


class Corpus:
    """Documents, or the nodes they were cut into, that may be added and deleted from several threads.

    Parameters
    ----------
    nodes
        Documents or chunks. One with the id of another replaces it.
    documents, docstore
        Where the whole texts of chunked documents are, if they are at hand.
    document_key
        Metadata key that names documents which are read as one.
    """

    def __init__(
        self,
        nodes: Iterable[BaseNode],
        documents: Sequence[BaseNode],
        docstore: BaseDocumentStore | None,
        document_key: str | None,
    ) -> None:
        check_documents(documents)
        self.docstore = docstore
        self.document_key = document_key
        self._documents = {document.node_id: document for document in documents}
        self._nodes: dict[str, BaseNode] = {}
        self._held: Held | None = None
        self._lock = threading.RLock()
        self.add(nodes)

    @property
    def ids(self) -> list[str]:
        """Ids of the documents, in the order in which they came."""
        with self._lock:
            return list(dict.fromkeys(source_id(node) for node in self._nodes.values()))

    def add(self, nodes: Iterable[BaseNode]) -> None:
        """Take in documents or chunks."""
        given = list(nodes)
        for number, node in enumerate(given):
            if not isinstance(node, BaseNode):
                raise TypeError(f"nodes[{number}] is {type(node).__name__}; expected a Document or a node")
        with self._lock:
            self._nodes.update({node.node_id: node for node in given})
            self._held = None

    def delete(self, ids: Sequence[str]) -> None:
        """Let go of documents and of all that was cut from them."""
        with self._lock:
            unknown = sorted(set(ids) - set(self.ids))
            if unknown:
                raise ValueError(
                    f"no document {unknown[0]!r} here; expected ref_doc_ids among {len(self.ids)}: see ref_doc_ids"
                )
            self._nodes = {name: node for name, node in self._nodes.items() if source_id(node) not in ids}
            self._documents = {name: node for name, node in self._documents.items() if name not in ids}
            self._held = None

    def held(self) -> Held:
        """All texts; joined by the first call after a change."""
        with self._lock:
            if self._held is None:
                self._held = self._read()
            return self._held

    def _read(self) -> Held:
        sources = source_texts(self.ids, self._documents.values(), self.docstore)
        nodes = list(self._nodes.values())
        held = _held(nodes, sources, self.document_key)
        partial = [name for name in sources if isinstance(name, str) and not held.covers(name)]
        documents = [document for name in partial if (document := self._document(name)) is not None]
        return _held([*nodes, *documents], sources, self.document_key) if documents else held

    def _document(self, name: str) -> BaseNode | None:
        document = self._documents.get(name)
        if document is None and self.docstore is not None:
            document = self.docstore.get_document(name, raise_error=False)
        return document if document is not None and source_id(document) == name else None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {**self.__dict__, "_lock": None, "_held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """All nodes of an index.

    Raises
    ------
    ValueError
        If its document store is empty, as it is where a vector store keeps the text.
    """
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
    """Ids of an index's own nodes: a document store may serve several indexes."""
    for attribute in ("nodes_dict", "all_nodes", "nodes", "node_ids"):
        ids = getattr(struct, attribute, None)
        if ids is not None:
            return list(ids.values() if isinstance(ids, Mapping) else ids)
    return None
