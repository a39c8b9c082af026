"""The retriever: finds the best sentences of whole documents."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index.postprocessor.spscanner.base import dispatcher
from llama_index.postprocessor.spscanner.nodes import AUTO, query_text
from llama_index.retrievers.spscanner.host import FollowedAnswer, NodeHost, as_items, index_nodes, node_filter
from spscanner_rag.retrieval import (
    CountTokens,
    HeldCorpus,
    Order,
    OwnFirstStage,
    Prompt,
    ReadBounds,
    ReadTokens,
    ReturnNodes,
    SentenceSearch,
    check_own_first_stage,
    off_loop,
)
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, never

FirstStage = OwnFirstStage | BaseRetriever

Method = TypeVar("Method", bound=Callable[..., Any])

_ALWAYS_SHOWN = ("similarity_top_k", "first_stage")


def _spanned_below(method: Method) -> Method:
    """Mark a method as traced, because the method of the base class that it calls opens the span."""
    method.__dict__["__dispatcher_span_decorated__"] = True
    return method


class SPScannerRetriever(BaseRetriever):
    """Retrieves the best sentences of whole documents.

    The scanner reads the question and documents from beginning to end. Each selected sentence becomes a new node.

    If there are more documents than ``read_documents`` and ``read_tokens`` allow, a first stage chooses those that
    are read for a question. The words of all documents are counted when the retriever is built, of later ones with
    the next question, and scores are relative to all of them, whichever are read.

    Parameters
    ----------
    nodes : sequence of nodes, optional
        Documents, or the chunks they were cut into: chunks of one document are joined in reading order. Needed
        unless there is a retriever as the first stage; it may be empty, and `add` adds to it.
    documents : sequence of nodes, optional
        Whole documents that chunks among ``nodes``, or among what a retriever finds, were cut from. They are read
        instead of their chunks.
    docstore : BaseDocumentStore, optional
        Document store in which such documents are looked up by id.
    similarity_top_k : int, float or str, default 50
        Sentences to select: a number of at least 1, a share below 1 (at least 10 sentences), "elbow" or
        "elbow:5-30" for as many as are above the steepest fall of the scores, or None for all.
    top_k_per_document : int, optional
        Maximum number of sentences of each document, neighbours not counted.
    first_stage : "bm25", "none" or BaseRetriever, default "bm25"
        What chooses the documents to read. ``"bm25"``: by BM25 of their sentences, and with an encoder also by
        their best sentence's meaning (then all texts are encoded once, which takes minutes for a thousand).
        ``"none"``: all are read. Or a retriever: the documents of the nodes that it finds are read, or a node
        itself if its document is unknown.
    retriever : BaseRetriever, optional
        Another name of ``first_stage`` for a retriever.
    read_documents, read_tokens : int, optional
        The most documents and tokens that are read for a question after a first stage, default 10 and "auto":
        200,000, on a CPU 100,000; None for no bound. Four ASCII characters, or one byte in UTF-8 of any other,
        count as one. A document that would exceed the bound is left out, except the best one.
    filters : MetadataFilters, optional
        Only nodes whose metadata pass give results. Scores remain relative to all documents. If no node passes,
        nothing is retrieved.
    model, scanner, scorer, backend, device, dtype, model_kwargs
        The scorer; see `SPScannerPostprocessor`.
    threshold, require_answer, max_tokens, prompt, count_tokens, context_sentences, order, merge_adjacent,
    diversity, always_keep
        The selection of sentences; see `SPScannerPostprocessor`.
    batch_size : int, default 64
        Number of texts given to the scanner at a time.
    keep_retrieval_score : bool, default False
        Keep the best score of the first stage for the sentence's document as ``retrieval_score`` of the result.
    return_nodes, keep_compression, document_key
        What is returned and what is read as one; see `SPScannerPostprocessor`.
    callback_manager, object_map, objects, verbose
        See `BaseRetriever`.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range or of the wrong type, a model or device that does not exist, or if both nodes
        and a retriever are missing.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        documents: Sequence[BaseNode] = (),
        docstore: BaseDocumentStore | None = None,
        similarity_top_k: float | str | None = 50,
        top_k_per_document: int | None = None,
        first_stage: FirstStage | None = None,  # None: "bm25", unless there is a retriever
        retriever: BaseRetriever | None = None,
        read_documents: int | None = 10,
        read_tokens: ReadTokens = "auto",
        filters: MetadataFilters | None = None,
        model: str | Path | None = None,
        scanner: Scanner | None = None,
        scorer: Scorer | None = None,
        backend: str = "auto",
        device: str = "auto",
        dtype: str = "auto",
        model_kwargs: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        require_answer: float | None = None,
        max_tokens: int | None = None,
        prompt: Prompt | None = None,
        count_tokens: CountTokens | str | None = None,
        context_sentences: int = 0,
        order: Order = "score",
        merge_adjacent: bool = False,
        diversity: float = 1.0,
        always_keep: Sequence[str] | Callable[[str], bool] | None = None,
        batch_size: int = 64,
        return_nodes: ReturnNodes = "sentence",
        keep_retrieval_score: bool = False,
        keep_compression: bool = False,
        document_key: str | None = AUTO,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        options = {
            "model": model, "scanner": scanner, "scorer": scorer, "device": device, "dtype": dtype,
            "backend": backend, "model_kwargs": model_kwargs, "similarity_top_k": similarity_top_k,
            "top_k_per_document": top_k_per_document, "threshold": threshold,
            "require_answer": require_answer, "max_tokens": max_tokens, "prompt": prompt,
            "count_tokens": count_tokens, "context_sentences": context_sentences, "order": order,
            "merge_adjacent": merge_adjacent, "diversity": diversity, "always_keep": always_keep,
            "batch_size": batch_size,
            "return_nodes": return_nodes, "keep_retrieval_score": keep_retrieval_score,
            "keep_compression": keep_compression,
        }  # fmt: skip
        self._search = SentenceSearch.of(
            options, top_k="similarity_top_k", top_k_per_text="top_k_per_document"
        )
        self._search.choice.check_names()
        self._first_stage = _checked_first_stage(first_stage, retriever)
        self._bounds = ReadBounds(read_documents, read_tokens)
        if filters is not None and not isinstance(filters, MetadataFilters):
            raise TypeError(
                f"filters is {type(filters).__name__}; expected llama_index.core.vector_stores.MetadataFilters"
            )
        self._filters = filters
        if nodes is None and isinstance(self._first_stage, str):
            raise ValueError(
                "nodes: got neither nodes nor a retriever; expected at least one: from_documents(...), "
                "from_nodes(...), from_index(...) or retriever=...; documents and docstore only complete what "
                "these find (for all nodes of a docstore: from_nodes(list(docstore.docs.values()), "
                "docstore=docstore)), and nodes=[] begins without any"
            )
        self._settings = _shown_settings(
            type(self),
            {
                **options,
                "model_kwargs": dict(self._search.choice.model_kwargs) or None,
                "first_stage": self._first_stage,
                "read_documents": read_documents,
                "read_tokens": read_tokens,
                "filters": filters,
            },
        )
        if nodes is None:  # with a first stage, as from_documents(documents, first_stage=...)
            nodes, documents = documents, ()
        empty = HeldCorpus(NodeHost.of(documents, docstore, document_key))
        super().__init__(callback_manager, object_map, objects, verbose)
        self._held = empty.adding(as_items(nodes or (), self.object_map))
        self._held.counted()  # now, and not while the first question waits

    def __repr__(self) -> str:
        count = len(self.ref_doc_ids)
        return f"{type(self).__name__}(<{count} document{'' if count == 1 else 's'}>, {self._settings})"

    @classmethod
    def from_documents(cls, documents: Sequence[Document], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from documents of any length; ``options`` are the other parameters of the class."""
        return cls(documents, **options)

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents that nodes were cut from, such as those of an `IngestionPipeline`.

        ``options`` are the parameters of the class: with ``documents`` or ``docstore`` the whole texts are read.
        """
        return cls(nodes, **options)

    @classmethod
    def from_index(cls, index: BaseIndex[Any], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents of an index; documents added to it later are not seen.

        ``options`` are the other parameters of the class. Where a vector store keeps the text, as those of Chroma
        and Qdrant do, its nodes are read. ``ValueError`` if it cannot list them.
        """
        defaults = {name: getattr(index, f"_{name}", None) for name in ("callback_manager", "object_map")}
        return cls(index_nodes(index), **{"docstore": index.docstore, **defaults, **options})

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:  # noqa: ANN401
        """Read the nodes and documents and their word counts from a folder that `persist` wrote.

        Parameters
        ----------
        path : str or Path
            Its arrays are used from disk, so it should stay until the retriever is gone. ``ValueError`` if it is
            missing, was written by something else, or is damaged.
        **options
            The other parameters of the class, such as ``docstore``; `persist` keeps none of them.
        """
        retriever = cls((), **options)
        retriever._held = HeldCorpus.load(path, retriever._held.host)
        retriever._held.counted()
        return retriever

    def persist(self, path: str | Path) -> None:
        """Write the nodes and documents, their word counts and their vectors to a folder, whole or not at all.

        A scanner with an encoder, as the bundled one, is loaded for this and makes the vectors that are missing.

        The folder is new or empty, or was persisted to before; its content is replaced. ``ValueError`` if it holds
        anything else, or metadata hold values that JSON cannot keep.
        """
        self._held.persist(path, self._search.meaning)

    @property
    def ref_doc_ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return self._held.ids

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add documents or nodes; one with a known id replaces the earlier one.

        A question that is being answered meanwhile is answered from the documents as they were.
        """
        items = as_items(nodes, self.object_map)
        with HeldCorpus.changing:
            self._held = self._held.adding(items)

    def delete(self, *ref_doc_ids: str) -> None:
        """Delete documents and the nodes cut from them; an unknown id is a ``ValueError`` and deletes nothing."""
        with HeldCorpus.changing:
            self._held = self._held.deleting(ref_doc_ids)

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
        first = self._first_stage
        found = None if isinstance(first, str) else first.retrieve(query_bundle)
        return self._sentences(query_bundle, found)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first = self._first_stage
        found = None if isinstance(first, str) else await first.aretrieve(query_bundle)
        return await off_loop(
            lambda cancelled: self._sentences(query_bundle, found, cancelled), self._search.at_once
        )

    def _sentences(
        self, query: QueryBundle, found: object, cancelled: Cancelled = never
    ) -> list[NodeWithScore]:
        held, question = self._held, query.query_str
        passes = None if self._filters is None else node_filter(self._filters)

        def admits(scored: NodeWithScore) -> bool:
            return passes is None or passes(scored.node)

        search = self._search
        bounds = self._bounds.on(search.choice)
        texts = held.read(question, self._first_stage, bounds, admits, found, search.meaning, cancelled)
        return search.within(held.counted()[1]).answer(question, texts, FollowedAnswer, cancelled)


def _checked_first_stage(first_stage: object, retriever: object) -> FirstStage:
    """The first stage, given under either name; raises ``ValueError`` or ``TypeError`` for anything else."""
    if first_stage is not None and retriever is not None:
        raise ValueError("retriever: got first_stage as well; expected one of them: they mean the same")
    if retriever is None:
        if first_stage is None:
            return "bm25"
        if isinstance(first_stage, str):
            return check_own_first_stage(first_stage)
    name, chosen = ("first_stage", first_stage) if retriever is None else ("retriever", retriever)
    if not isinstance(chosen, BaseRetriever):
        raise TypeError(
            f"{name} is {type(chosen).__name__}; expected a BaseRetriever, such as index.as_retriever()"
        )
    return chosen


def _shown_settings(kind: type[SPScannerRetriever], settings: Mapping[str, Any]) -> str:
    """``name=value`` of the settings that differ from the constructor's defaults, without an access token."""
    return ", ".join(
        f"{name}={_shown(settings[name])}"
        for name, parameter in inspect.signature(kind.__init__).parameters.items()
        if name in settings and (name in _ALWAYS_SHOWN or settings[name] != parameter.default)
    )


def _shown(value: object) -> str:
    """Objects are shown by the names of their classes, functions by theirs."""
    if value is None or isinstance(value, str | int | float | Mapping):
        return repr(value)
    return str(getattr(value, "__name__", f"<{type(value).__name__}>"))
