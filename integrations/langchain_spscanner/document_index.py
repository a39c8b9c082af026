"""A retriever's documents for LangChain's indexing API, which keeps them in step with where they come from."""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.indexing import DeleteResponse, UpsertResponse
from langchain_core.indexing.base import DocumentIndex
from langchain_core.runnables import RunnableConfig
from pydantic import SkipValidation
from typing_extensions import override


class DocumentHolder(Protocol):
    """What a retriever needs for its documents to be indexed; `SPScannerRetriever` has it."""

    def add_documents(self, documents: Sequence[Document]) -> list[str]: ...  # noqa: D102

    def delete(self, ids: Sequence[str]) -> None: ...  # noqa: D102

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]: ...  # noqa: D102

    def invoke(self, input: str, config: RunnableConfig | None = None) -> list[Document]: ...  # noqa: A002, D102

    async def ainvoke(self, input: str, config: RunnableConfig | None = None) -> list[Document]: ...  # noqa: A002, D102


class SPScannerDocumentIndex(DocumentIndex):
    """The documents of a `SPScannerRetriever` as a LangChain ``DocumentIndex``, which adds and deletes them there.

    Give it to ``langchain_core.indexing.index(loader, record_manager, ...)``. It answers as the retriever does.
    """

    retriever: SkipValidation[DocumentHolder]

    @override
    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        return UpsertResponse(succeeded=self.retriever.add_documents(items), failed=[])

    @override
    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        if ids is None:
            raise ValueError("ids: got None; expected the ids of the documents to delete")
        # An unknown id is no failure.
        gone = [str(document.id) for document in self.retriever.get_by_ids(ids)]
        self.retriever.delete(gone)
        return DeleteResponse(succeeded=gone, num_deleted=len(gone), failed=[], num_failed=0)

    @override
    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        return self.retriever.get_by_ids(ids)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.retriever.invoke(query, {"callbacks": run_manager.get_child()})

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await self.retriever.ainvoke(query, {"callbacks": run_manager.get_child()})
