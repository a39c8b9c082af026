"""The compressor: reduces documents to the sentences that answer the query."""

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from typing_extensions import override

from langchain_spscanner._document_answer import DocumentAnswer
from langchain_spscanner._document_fields import DocumentFields
from langchain_spscanner._read_documents import read_documents
from langchain_spscanner._whole_documents import WholeDocuments
from spscanner_rag.retrieval import SentenceSearch
from spscanner_rag.scorers import Cancelled, check_query, never


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

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> lease = Document("The lease began in May. Ada Byrne signed it.")
    >>> compressor = SPScannerCompressor(k=1)
    >>> best = compressor.compress_documents([lease], "Who signed the lease?")
    >>> [document.page_content for document in best]
    ['Ada Byrne signed it.']
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
        search = self.sentence_search()
        return self._compressed(documents, check_query(query), search)

    @override
    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """`compress_documents` off the event loop.

        Cancelling the task ends the scan.
        """
        checked_query = check_query(query)
        search = self.sentence_search()
        return await search.off_loop(
            lambda cancelled: self._compressed(
                documents, checked_query, search, cancelled
            )
        )

    def _compressed(
        self,
        documents: Sequence[Document],
        query: str,
        search: SentenceSearch,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        wholes = None
        if self.documents:
            wholes = WholeDocuments(self.documents, self.document_key)
        texts = read_documents(documents, self.document_key, wholes)
        return search.answer(query, texts, DocumentAnswer, cancelled)
