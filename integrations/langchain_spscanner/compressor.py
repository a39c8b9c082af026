"""The compressor: documents that were retrieved in, their sentences that matter out."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import override

from langchain_spscanner._conversion import TextToScan, read
from langchain_spscanner._options import ScanFields, require_query
from spscanner_rag.retrieval import off_loop
from spscanner_rag.scorers import Cancelled, never


class SPScannerCompressor(ScanFields, BaseDocumentCompressor):
    """Keeps the sentences of retrieved documents that answer the query.

    For ``ContextualCompressionRetriever`` and ``DocumentCompressorPipeline``. Results are like those of
    `SPScannerRetriever`: they keep every key of their document's metadata and add score, span and id.

    Parameters
    ----------
    documents : sequence of Document, optional
        Whole documents. A chunk of one of them is scored as a part of it, and only sentences that touch a
        chunk are returned. Default: chunks are read one after the other, with a break where text is missing.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For a field that is unknown or out of its range.
    """

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Keep the sentences that answer the query.

        Parameters
        ----------
        documents : sequence of Document
            Not changed. Empty: nothing is returned, and no model is loaded.
        query : str
            The question; not empty.
        callbacks : optional
            Not used: a compressor traces no run of its own. `as_runnable` does.

        Returns
        -------
        list of Document
            Empty if nothing qualifies.

        Raises
        ------
        ValueError
            If the query is empty.
        """
        return self._compressed(documents, require_query(query))

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents` off the event loop; cancelling the task ends the scan."""
        query = require_query(query)
        return await off_loop(lambda cancelled: self._compressed(documents, query, cancelled))

    def as_runnable(self) -> Runnable[dict[str, Any], list[Document]]:
        """A runnable of ``{"documents": [...], "query": "..."}``, sync and async."""

        def compress(inputs: dict[str, Any]) -> list[Document]:
            return self.compress_documents(*_as_inputs(inputs))

        async def acompress(inputs: dict[str, Any]) -> list[Document]:
            return await self.acompress_documents(*_as_inputs(inputs))

        return RunnableLambda(compress, acompress, name=type(self).__name__)

    def _compressed(
        self, documents: Sequence[Document], query: str, cancelled: Cancelled = never
    ) -> list[Document]:
        origin = read(documents, self.document_key, self._held_documents() if self.documents else None)
        texts = [TextToScan(joined, origin) for joined in origin.texts]
        return self._scan(query, texts, self._search(), cancelled)


def _as_inputs(inputs: object) -> tuple[Sequence[Document], str]:
    if not isinstance(inputs, Mapping) or not {"documents", "query"} <= set(inputs):
        got = sorted(map(str, inputs)) if isinstance(inputs, Mapping) else type(inputs).__name__
        raise ValueError(f'input: got {got}; expected a mapping with "documents" and "query"')
    return inputs["documents"], inputs["query"]
