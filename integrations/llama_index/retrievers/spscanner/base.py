"""The retriever: finds the best sentences of whole documents."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
)
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.base import dispatcher
from llama_index.postprocessor.spscanner.node_relations import nodes_by_id
from llama_index.retrievers.spscanner.index_node_answer import IndexNodeAnswer
from llama_index.retrievers.spscanner.index_nodes import index_nodes
from llama_index.retrievers.spscanner.node_filter import node_filter
from llama_index.retrievers.spscanner.node_host import NodeHost, items_of
from llama_index.retrievers.spscanner.retriever_fields import NodeRetrieverFields
from spscanner_rag.retrieval import HeldCorpus
from spscanner_rag.scorers import Cancelled, check_query, never


class SPScannerRetriever(BaseRetriever):
    """Retrieves the best sentences of whole documents.

    The scanner reads the question and documents from beginning to end. Each selected
    sentence becomes a new node.

    If there are more documents than ``read_documents`` and ``read_tokens`` allow, a
    first stage chooses those that are read for a question. The words of all documents
    are counted when the retriever is built, and those of documents added later with the
    next question. Scores are relative to all documents, whichever are read.

    Parameters
    ----------
    nodes : sequence of nodes, optional
        Documents, or the chunks they were cut into: chunks of one document are joined
        in reading order. Required unless the first stage is a retriever; it may be
        empty, and `add` adds more.
    documents : sequence of nodes, optional
        Whole documents that chunks in ``nodes``, or chunks that a retriever finds, were
        cut from. They are read instead of their chunks.
    docstore : BaseDocumentStore, optional
        Document store in which such documents are looked up by id.
    similarity_top_k : int, float or str, default 50
        Sentences to select: a number of at least 1, a share below 1 (at least 10
        sentences), "elbow" or "elbow:5-30" for those before the steepest fall of the
        sorted scores, or None for all.
    top_k_per_document : int, optional
        Maximum number of sentences of each document, neighbours not counted.
    first_stage, retriever, read_documents, read_tokens
        As for `RetrieverFields`; a first stage is a `BaseRetriever`.
    filters : MetadataFilters, optional
        Only nodes whose metadata pass these filters give results. Scores remain
        relative to all documents. If no node passes, nothing is retrieved.
    **options
        Which model scores, and what is selected: the fields of `ScanFields`, and
        ``document_key`` as for `SPScannerPostprocessor`. With ``keep_retrieval_score``,
        results have the first stage's best score for their document.
    callback_manager, object_map, objects, verbose
        See `BaseRetriever`.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range or of the wrong type, a model or device that does
        not exist, or if both nodes and a retriever are missing.

    Examples
    --------
    >>> from llama_index.core.schema import Document
    >>> lease = Document(text="The lease began in May. Ada Byrne signed it.")
    >>> retriever = SPScannerRetriever.from_documents([lease], similarity_top_k=1)
    >>> best = retriever.retrieve("Who signed the lease?")[0]
    >>> best.node.text, best.node.start_char_idx, best.node.end_char_idx
    ('Ada Byrne signed it.', 24, 44)
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        documents: Sequence[BaseNode] = (),
        docstore: BaseDocumentStore | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
        **options: Any,  # noqa: ANN401 - the fields of `NodeRetrieverFields`
    ) -> None:
        fields = NodeRetrieverFields(**options)
        self._search = fields.sentence_search()
        self._settings = fields.shown()
        self._filters = fields.filters
        if fields.filters is not None:
            node_filter(fields.filters)  # raises for a filter that it cannot test
        if nodes is None and isinstance(fields.stage, str):
            raise ValueError(
                "nodes: got neither nodes nor a retriever; expected at least one:"
                " from_documents(...), from_nodes(...), from_index(...) or"
                " retriever=...; documents and docstore only supply the whole texts of"
                " nodes (for all nodes of a docstore:"
                " from_nodes(list(docstore.docs.values()), docstore=docstore)), and"
                " nodes=[] makes an empty retriever"
            )
        if nodes is None:
            # With a first stage, as from_documents(documents, first_stage=...).
            nodes = documents
            documents = ()
        host = NodeHost(nodes_by_id(documents), docstore, fields.document_key)
        super().__init__(callback_manager, object_map, objects, verbose)
        self._held = HeldCorpus(host).adding(items_of(nodes or (), self.object_map))
        self._held.counted()  # now, and not while the first question waits

    def __repr__(self) -> str:
        count = len(self.ref_doc_ids)
        documents = "1 document" if count == 1 else f"{count} documents"
        return f"{type(self).__name__}(<{documents}>, {self._settings})"

    @classmethod
    def from_documents(cls, documents: Sequence[Document], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from documents of any length.

        ``options`` are the other parameters of the class. If the first stage chooses
        among the documents for each question, `index` is called.
        """
        return cls.from_nodes(documents, **options)

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents that nodes were cut from.

        The nodes may be those of an `IngestionPipeline`. ``options`` are the others of
        the class; with ``documents`` or ``docstore``, the whole texts are read. `index`
        is called as by `from_documents`.
        """
        retriever = cls(nodes, **options)
        retriever.index()
        return retriever

    @classmethod
    def from_index(cls, index: BaseIndex[Any], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents of an index.

        Documents added to it later are not seen.

        ``options`` are the other parameters of the class. Where a vector store keeps
        the text, as those of Chroma and Qdrant do, its nodes are read. ``ValueError``
        if it cannot list them.
        """
        defaults = {
            "docstore": index.docstore,
            "callback_manager": getattr(index, "_callback_manager", None),
            "object_map": getattr(index, "_object_map", None),
        }
        return cls.from_nodes(index_nodes(index), **{**defaults, **options})

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:  # noqa: ANN401
        """Read what `persist` wrote.

        ``options`` are the other parameters of the class, such as ``docstore``.

        The retriever uses the folder's arrays from disk: keep the folder as long as the
        retriever. ``ValueError`` if the folder is missing, damaged, or was not written
        by `persist` of this class.
        """
        retriever = cls((), **options)
        retriever._held = HeldCorpus.load(path, retriever._held.host)
        retriever._held.counted()
        return retriever

    def index(self) -> None:
        """Prepare the documents that "bm25" chooses from, so that no question has to.

        A scanner with an encoder, such as the bundled one, is loaded and reads each
        document once, with a bar on a terminal. Nothing is done if a question reads all
        documents anyway. Documents that are added later are prepared with the next
        question, or by another call.
        """
        self._search.index(self._held)

    def persist(self, path: str | Path) -> None:
        """Write the nodes and documents, and what is prepared of them, to a folder.

        They are written completely or not at all. The scanner is loaded for this, and
        prepares what is missing, with a bar on a terminal: sentences, tokens, words
        and, with an encoder such as the bundled one's, vectors. The folder
        must be new, empty, or written by `persist` before; its content is replaced.
        ``ValueError`` if it holds anything else, or if metadata hold values that JSON
        cannot keep.
        """
        self._search.persist(self._held, path)

    @property
    def ref_doc_ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return self._held.ids

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add documents or nodes, which replace those with the same ids.

        Questions that are already being answered still see the documents as they were.
        """
        items = items_of(nodes, self.object_map)
        with HeldCorpus.changing:
            self._held = self._held.adding(items)

    def delete(self, *ref_doc_ids: str) -> None:
        """Delete documents and their nodes.

        An unknown id raises ``ValueError``, and nothing is deleted.
        """
        with HeldCorpus.changing:
            self._held = self._held.deleting(ref_doc_ids)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first_stage: Any = self._search.first_stage
        found_nodes = None
        if not isinstance(first_stage, str):
            found_nodes = first_stage.retrieve(query_bundle)
        return self._sentences(query_bundle, found_nodes)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first_stage: Any = self._search.first_stage
        found_nodes = None
        if not isinstance(first_stage, str):
            found_nodes = await first_stage.aretrieve(query_bundle)
        return await self._search.off_loop(
            lambda cancelled: self._sentences(query_bundle, found_nodes, cancelled)
        )

    def _sentences(
        self, query: QueryBundle, found_nodes: object, cancelled: Cancelled = never
    ) -> list[NodeWithScore]:
        text = check_query(query.query_str)
        admits = None
        if self._filters is not None:
            passes = node_filter(self._filters)
            admits = lambda scored: passes(scored.node)  # noqa: E731
        return self._search.answer_from(
            self._held, text, IndexNodeAnswer, admits, found_nodes, cancelled
        )


def _signature_with_fields() -> inspect.Signature:
    """The retriever's parameters with the fields that ``options`` stands for."""
    parameters = dict(inspect.signature(SPScannerRetriever).parameters)
    del parameters["options"]
    fields = inspect.signature(NodeRetrieverFields).parameters
    return inspect.Signature([*parameters.values(), *fields.values()])


# So that help() and editors show the fields.
SPScannerRetriever.__signature__ = _signature_with_fields()  # type: ignore[attr-defined]
