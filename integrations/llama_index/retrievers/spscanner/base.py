"""The retriever: finds the best sentences of whole documents."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.events import dispatcher
from llama_index.postprocessor.spscanner.nodes import AUTO, query_text
from llama_index.postprocessor.spscanner.whole_nodes import best_nodes
from llama_index.retrievers.spscanner.held import HeldNodes, index_nodes
from spscanner_rag.retrieval import (
    CountTokens,
    Order,
    ReturnNodes,
    SentenceSearch,
    check_return_nodes,
    off_loop,
)
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, never

Method = TypeVar("Method", bound=Callable[..., Any])


def _spanned_below(method: Method) -> Method:
    """Mark a method as traced, because the method of the base class that it calls opens the span."""
    method.__dict__["__dispatcher_span_decorated__"] = True
    return method


class SPScannerRetriever(BaseRetriever):
    """Retrieves the best sentences of whole documents.

    The scanner reads the question and every document, or every one that a first stage finds, from beginning to
    end. Each selected sentence becomes a new node.

    Parameters
    ----------
    nodes : sequence of nodes, optional
        Documents, or the chunks they were cut into: chunks of one document are joined in reading order.
    documents : sequence of nodes, optional
        Whole documents that chunks among ``nodes`` were cut from. They are read instead of their chunks.
    docstore : BaseDocumentStore, optional
        Document store in which such documents are looked up by id.
    similarity_top_k : int or float, default 50
        Sentences to select: a number of at least 1, a share below 1 (at least 10 sentences), or None for all.
    top_k_per_document : int, optional
        Maximum number of sentences of each document, neighbours not counted.
    retriever : BaseRetriever, optional
        First stage: only the documents of the nodes it finds are scanned. If the document of a node is unknown,
        the node itself is scanned.
    candidate_documents : int, optional
        Maximum number of documents to scan, in the order of the first stage. Default: all that it finds.
    model, scanner, scorer, backend, device, dtype, model_kwargs
        The scorer; see `SPScannerPostprocessor`.
    threshold, max_tokens, count_tokens, context_sentences, order, merge_adjacent
        The selection of sentences; see `SPScannerPostprocessor`.
    batch_size : int, default 64
        Number of texts given to the scanner at a time.
    return_nodes : "sentence", "node" or "pruned", default "sentence"
        What to return: sentences, the nodes that they stand in, or these cut down to them; see
        `SPScannerPostprocessor`.
    keep_retrieval_score : bool, default False
        Keep the best score of the first stage for the sentence's document as ``retrieval_score`` of the result.
    document_key : str or None, default "auto"
        Metadata key; documents with the same value are read as one, and with "auto" the pages of a file; see
        `SPScannerPostprocessor`.
    callback_manager, object_map, objects, verbose
        See `BaseRetriever`.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range or of the wrong type.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] = (),
        *,
        documents: Sequence[BaseNode] = (),
        docstore: BaseDocumentStore | None = None,
        similarity_top_k: float | None = 50,
        top_k_per_document: int | None = None,
        retriever: BaseRetriever | None = None,
        candidate_documents: int | None = None,
        model: str | Path | None = None,
        scanner: Scanner | None = None,
        scorer: Scorer | None = None,
        backend: str = "auto",
        device: str = "auto",
        dtype: str = "auto",
        model_kwargs: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context_sentences: int = 0,
        order: Order = "score",
        merge_adjacent: bool = False,
        batch_size: int = 64,
        return_nodes: ReturnNodes = "sentence",
        keep_retrieval_score: bool = False,
        document_key: str | None = AUTO,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        options = {
            "model": model, "scanner": scanner, "scorer": scorer, "device": device, "dtype": dtype,
            "backend": backend, "model_kwargs": model_kwargs, "similarity_top_k": similarity_top_k,
            "top_k_per_document": top_k_per_document, "threshold": threshold, "max_tokens": max_tokens,
            "count_tokens": count_tokens, "context_sentences": context_sentences, "order": order,
            "merge_adjacent": merge_adjacent, "batch_size": batch_size,
        }  # fmt: skip
        self._search = SentenceSearch.of(
            options, top_k="similarity_top_k", top_k_per_text="top_k_per_document"
        )
        _check_first_stage(retriever, candidate_documents)
        self._return_nodes = check_return_nodes(return_nodes)
        self._keep_retrieval_score = keep_retrieval_score
        self._retriever = retriever
        self._candidate_documents = candidate_documents
        self._held = HeldNodes(nodes, documents, docstore, document_key)
        super().__init__(callback_manager, object_map, objects, verbose)

    @classmethod
    def from_documents(cls, documents: Sequence[Document], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from documents of any length; ``options`` are the other parameters of the class."""
        return cls(documents, **options)

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents that nodes were cut from.

        Parameters
        ----------
        nodes : sequence of nodes
            What a node parser or an `IngestionPipeline` returns.
        **options
            The other parameters of the class: with ``documents`` or ``docstore`` the whole texts are read.
        """
        return cls(nodes, **options)

    @classmethod
    def from_index(cls, index: BaseIndex[Any], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents of an index; documents added to it later are not seen.

        Parameters
        ----------
        index : BaseIndex
            Any index whose document store holds its nodes.
        **options
            The other parameters of the class. ``docstore`` is the index's.

        Raises
        ------
        ValueError
            If the index's document store is empty, as it is where a remote vector store keeps the text.
        """
        defaults = {name: getattr(index, f"_{name}", None) for name in ("callback_manager", "object_map")}
        return cls(index_nodes(index), **{"docstore": index.docstore, **defaults, **options})

    @property
    def ref_doc_ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return self._held.ids

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add documents or nodes; one with a known id replaces the earlier one."""
        self._held.add(nodes)

    def delete(self, *ref_doc_ids: str) -> None:
        """Delete documents and all nodes that were cut from them.

        Raises
        ------
        ValueError
            If an id is unknown; then nothing is deleted.
        """
        self._held.delete(ref_doc_ids)

    @_spanned_below
    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve sentences for a question. An empty one raises ``ValueError`` before any event."""
        query_text(str_or_query_bundle)
        return super().retrieve(str_or_query_bundle)

    @_spanned_below
    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve sentences without blocking the event loop; cancelling the task ends the scan."""
        query_text(str_or_query_bundle)
        return await super().aretrieve(str_or_query_bundle)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = None if self._retriever is None else self._retriever.retrieve(query_bundle)
        return self._sentences(query_bundle, found)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = None if self._retriever is None else await self._retriever.aretrieve(query_bundle)
        return await off_loop(lambda cancelled: self._sentences(query_bundle, found, cancelled))

    def _sentences(
        self, query: QueryBundle, found: Sequence[NodeWithScore] | None, cancelled: Cancelled = never
    ) -> list[NodeWithScore]:
        held = self._held
        joined = held.all() if found is None else held.chosen(found, self._candidate_documents)
        return best_nodes(
            self._search,
            query_text(query),
            joined,
            self._return_nodes,
            self._keep_retrieval_score,
            cancelled,
        )


def _check_first_stage(retriever: object, candidate_documents: object) -> None:
    if retriever is not None and not isinstance(retriever, BaseRetriever):
        raise TypeError(
            f"retriever is {type(retriever).__name__}; expected a BaseRetriever, such as index.as_retriever()"
        )
    if candidate_documents is None:
        return
    if type(candidate_documents) is not int or candidate_documents < 1:
        raise ValueError(
            f"candidate_documents: got {candidate_documents!r}; expected an integer of at least 1, or None"
        )
    if retriever is None:
        raise ValueError(
            f"candidate_documents: got {candidate_documents} without retriever; expected the first stage "
            "that chooses them as well"
        )
