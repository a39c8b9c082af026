"""The documents of a retriever: joined to texts and counted once, until they change."""

import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.nodes import (
    JoinedNodes,
    check_documents,
    group_of,
    read_nodes,
    source_id,
    source_texts,
    text_of,
)
from llama_index.retrievers.spscanner.folder import load_nodes, persist_nodes
from spscanner_rag.retrieval import Corpus


@dataclass(frozen=True, slots=True)
class HeldTexts:
    """The texts of all documents at one moment, and the index of the text that contains each document."""

    joined: JoinedNodes
    number: Mapping[str, int]
    corpus: Corpus

    def of(self, number: int, nodes: Sequence[NodeWithScore]) -> JoinedNodes:
        """One whole text, with the best score that the first stage gave to one of its nodes."""
        best = max((scored.score for scored in nodes if scored.score is not None), default=None)
        return JoinedNodes([self.joined.texts[number]], self.joined.nodes, [best] * len(self.joined.nodes))

    def covers(self, name: str) -> bool:
        """Whether the nodes of a document cover all of its text except white space."""
        if name not in self.number:
            return True
        joined = self.joined.texts[self.number[name]]
        run = next(run for run in joined.runs if run.source == name)
        end = run.start
        for placed in joined.placed:
            if placed.start >= run.end:
                break
            if joined.text[end : placed.start].strip():
                return False
            end = max(end, placed.end)
        return not joined.text[end : run.end].strip()


class HeldNodes:
    """Documents and chunks by id. Thread-safe.

    ``documents`` and ``docstore`` provide whole texts of chunked documents, if available.
    """

    def __init__(
        self,
        nodes: Iterable[BaseNode],
        documents: Sequence[BaseNode],
        docstore: BaseDocumentStore | None,
        document_key: str | None,
    ) -> None:
        check_documents(documents)
        self._docstore = docstore
        self._document_key = document_key
        self._documents = {document.node_id: document for document in documents}
        self._nodes: dict[str, BaseNode] = {}
        self._texts: HeldTexts | None = None
        self._corpus = Corpus()  # of the last texts; those that remain are not counted again
        self._lock = threading.RLock()
        self.add(nodes)

    @property
    def ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        with self._lock:
            return list(dict.fromkeys(source_id(node) for node in self._nodes.values()))

    def add(self, nodes: Iterable[BaseNode]) -> None:
        """Add documents or chunks; one with a known id replaces the earlier one."""
        given = list(nodes)
        for number, node in enumerate(given):
            if not isinstance(node, BaseNode):
                raise TypeError(f"nodes[{number}] is {type(node).__name__}; expected a Document or a node")
        with self._lock:
            self._nodes.update({node.node_id: node for node in given})
            self._texts = None

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents and all that was cut from them."""
        with self._lock:
            unknown = sorted(set(ids) - set(self.ids))
            if unknown:
                raise ValueError(
                    f"no document {unknown[0]!r} here; expected ids among the {len(self.ids)} in ref_doc_ids"
                )
            self._nodes = {name: node for name, node in self._nodes.items() if source_id(node) not in ids}
            self._documents = {name: node for name, node in self._documents.items() if name not in ids}
            self._texts = None

    def persist(self, path: str | Path) -> None:
        """Write nodes, documents and counts to a folder."""
        with self._lock:
            corpus = self.texts().corpus
            nodes, documents = list(self._nodes.values()), list(self._documents.values())
        persist_nodes(path, nodes, documents, corpus)

    def load(self, path: str | Path) -> None:
        """Hold what `persist` wrote instead."""
        nodes, documents, corpus = load_nodes(path)
        with self._lock:
            self._nodes = {node.node_id: node for node in nodes}
            self._documents = {document.node_id: document for document in documents}
            self._texts, self._corpus = None, corpus

    def texts(self) -> HeldTexts:
        """All texts as they are now; the first call after a change joins and counts them."""
        with self._lock:
            if self._texts is None:
                sources = source_texts(self.ids, self._documents.values(), self._docstore)
                nodes = list(self._nodes.values())
                texts = self._read(nodes, sources)
                partial = [name for name in sources if isinstance(name, str) and not texts.covers(name)]
                documents = [document for name in partial if (document := self._document(name)) is not None]
                if documents:
                    texts = self._read([*nodes, *documents], sources)
                self._corpus = self._corpus.with_texts(texts.joined.texts)
                self._texts = HeldTexts(texts.joined, texts.number, self._corpus)
            return self._texts

    def found(self, texts: HeldTexts, nodes: Sequence[NodeWithScore]) -> list[JoinedNodes]:
        """The documents that a first stage found, in its order: whole if they are held, else the found nodes."""
        candidates: dict[Hashable, list[NodeWithScore]] = {}
        for scored in nodes:
            name = self._name(scored.node, texts)
            if name is not None:
                candidates.setdefault(name, []).append(scored)
        loose = [node for name, own in candidates.items() if not isinstance(name, int) for node in own]
        sources = source_texts((source_id(scored.node) for scored in loose), None, self._docstore)
        return [
            texts.of(name, own)
            if isinstance(name, int)
            else read_nodes(own, sources, document_key=self._document_key)
            for name, own in candidates.items()
        ]

    def _name(self, node: BaseNode, texts: HeldTexts) -> Hashable | None:
        """Index of the held text that contains a node, else a key for its document; None without text."""
        source = source_id(node)
        number = texts.number.get(source)
        if number is not None:
            return number
        if not text_of(node):
            return None
        group = group_of(node, self._document_key)
        return ("source", source) if group is None else ("group", group)

    def _read(self, nodes: Sequence[BaseNode], sources: Mapping[Hashable, str]) -> HeldTexts:
        scored = [NodeWithScore(node=node) for node in nodes]
        joined = read_nodes(scored, sources, document_key=self._document_key)
        numbers = {str(run.source): number for number, text in enumerate(joined.texts) for run in text.runs}
        return HeldTexts(joined, numbers, self._corpus)

    def _document(self, name: str) -> BaseNode | None:
        document = self._documents.get(name)
        if document is None and self._docstore is not None:
            document = self._docstore.get_document(name, raise_error=False)
        return document if document is not None and source_id(document) == name else None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {**self.__dict__, "_lock": None, "_texts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
