"""The compressor: reduces retrieved documents to the sentences that answer the query."""

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from typing_extensions import override

from langchain_spscanner._documents import DocumentAnswer, Wholes, read
from langchain_spscanner._fields import DocumentFields
from spscanner_rag.retrieval import SentenceSearch, off_loop
from spscanner_rag.scorers import Cancelled, check_query, never


class SPScannerCompressor(DocumentFields, BaseDocumentCompressor):
    """Keeps the sentences of retrieved documents that answer the query.

    For ``ContextualCompressionRetriever`` and ``DocumentCompressorPipeline``. Results are like those of
    `SPScannerRetriever`: the metadata of the document, with score, logit, span and id added. Further
    parameters are the fields of `DocumentFields`, such as ``model``, ``k`` and ``threshold``.

    Parameters
    ----------
    documents : sequence of Document, optional
        Whole documents. A chunk of one of them is scored within it, and only sentences that overlap a chunk are
        returned. Default: the chunks alone are read, with a break where text is missing.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown field or a value out of range.
    """

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the sentences that answer the query, empty if nothing qualifies.

        Parameters
        ----------
        documents : sequence of Document
            Not changed. If they have no text, no model is loaded.
        query : str
            The question; ``ValueError`` if it is empty, ``TypeError`` without one.
        callbacks : optional
            Not used: a compressor has no traced run of its own.
        """
        return self._compressed(documents, check_query(query), self._search())

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents` off the event loop; cancelling the task ends the scan."""
        query, search = check_query(query), self._search()
        return await off_loop(
            lambda cancelled: self._compressed(documents, query, search, cancelled), search.at_once
        )

    def _compressed(
        self, documents: Sequence[Document], query: str, search: SentenceSearch, cancelled: Cancelled = never
    ) -> list[Document]:
        wholes = Wholes(self.documents, self.document_key) if self.documents else None
        texts = read(documents, self.document_key, wholes)
        return search.answer(query, texts, DocumentAnswer, cancelled)
