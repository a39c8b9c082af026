"""The compressor: reduces retrieved documents to the sentences that answer the query."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import (
    Field,
    PrivateAttr,
    SkipValidation,
    field_serializer,
    field_validator,
)
from typing_extensions import override

from langchain_spscanner._documents import (
    DocumentAnswer,
    DocumentHost,
    Wholes,
    own_copies,
    read,
)
from spscanner_rag.retrieval import HeldCorpus, ScanFields, SentenceSearch
from spscanner_rag.scorers import Cancelled, check_query, never


class DocumentFields(ScanFields):
    """Which model scores, which sentences are selected, and what is returned.

    The metadata of a result have its scores: ``relevance_score``, ``spscanner_logit``
    and, on request, ``spscanner_retrieval_score``.
    """

    limits: ClassVar = ("k", "k_per_document")

    k: SkipValidation[int | float | str | None] = 50
    """Maximum number of sentences; below 1 a share of all, but at least 10; "elbow"
    or "elbow:5-30" for those before the steepest fall of the sorted scores; None for
    no limit."""

    k_per_document: SkipValidation[int | None] = None
    """Maximum number of sentences of each document, neighbours not counted; None for
    no limit."""

    document_key: str | None = "source"
    """Documents with the same value under this metadata key, such as the pages of a
    file, are read as one text, sorted by page number if all have one. None: each
    document is read alone."""

    documents: SkipValidation[Sequence[Document] | None] = Field(
        default=None, repr=False
    )

    _held: HeldCorpus[Document] | None = PrivateAttr(default=None)

    @field_validator("documents", mode="before")
    @classmethod
    def _copy_documents(
        cls, value: Iterable[Document] | None
    ) -> tuple[Document, ...] | None:
        return None if value is None else own_copies(value)

    @field_serializer("model_kwargs")
    def _without_token(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: option for name, option in value.items() if name != "token"}

    def _corpus(self) -> HeldCorpus[Document]:
        """The documents as a corpus, which is replaced when they or the key change."""
        if self.documents is not None and not isinstance(self.documents, tuple):
            self.documents = tuple(self.documents)
        documents, host = self.documents or (), DocumentHost(self.document_key)
        held = self._held or HeldCorpus(host)
        if held.items is not documents or held.host != host:
            held = held.replaced(host, documents)
        self._held = held
        return held


class SPScannerCompressor(DocumentFields, BaseDocumentCompressor):
    """Keeps the sentences of retrieved documents that answer the query.

    For ``ContextualCompressionRetriever`` and ``DocumentCompressorPipeline``. Results
    are like those of `SPScannerRetriever`: the metadata of the document, with score,
    logit, span and id added. Further parameters are the fields of `DocumentFields`,
    such as ``model``, ``k`` and ``threshold``.

    Parameters
    ----------
    documents : sequence of Document, optional
        Whole documents. A chunk of one of them is scored within it, and only sentences
        that overlap a chunk are returned. Default: the chunks alone are read, with a
        break where text is missing.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown field or a value out of range.
    """

    @override
    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Return the sentences that answer the query, empty if nothing qualifies.

        Parameters
        ----------
        documents : sequence of Document
            Not changed. If they have no text, no model is loaded.
        query : str
            The question; ``ValueError`` if it is blank, ``TypeError`` if it is not a
            string.
        callbacks : optional
            Not used: a compressor has no traced run of its own.
        """
        return self._compressed(documents, check_query(query), self.sentence_search())

    @override
    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """`compress_documents` off the event loop; cancelling the task ends the scan."""
        query, search = check_query(query), self.sentence_search()
        return await search.off_loop(
            lambda cancelled: self._compressed(documents, query, search, cancelled)
        )

    def _compressed(
        self,
        documents: Sequence[Document],
        query: str,
        search: SentenceSearch,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        wholes = Wholes(self.documents, self.document_key) if self.documents else None
        texts = read(documents, self.document_key, wholes)
        return search.answer(query, texts, DocumentAnswer, cancelled)
