"""The retriever: finds the sentences of whole documents that answer a query."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict, Field, SkipValidation, model_validator
from typing_extensions import override

from langchain_spscanner._conversion import TextToScan
from langchain_spscanner._identity import own_copies, require_document
from langchain_spscanner._options import ScanFields, require_query
from spscanner_rag.retrieval import off_loop

_ARGUMENTS = ("k", "threshold", "max_tokens")
_OF_THE_FRAMEWORK = ("run_id", "verbose")  # arguments of BaseRetriever.invoke itself

_writing = threading.Lock()  # shared by all retrievers: it is held only while a tuple is replaced


class SPScannerRetriever(ScanFields, BaseRetriever):
    """Reads documents whole and returns the sentences that answer a query.

    Each result is a `Document` with the metadata of the document that contains it, and with
    ``relevance_score`` (from 0 to 1), ``spscanner_logit``, ``start_index`` and ``end_index`` (its span in that
    document, in characters) and ``spscanner_id``, which is also its ``id``. A document with an integer
    ``start_index`` in its metadata is a chunk; its spans are offsets in the document that it was cut from.

    ``invoke``, ``ainvoke``, ``batch`` and ``abatch`` also accept ``k``, ``threshold`` and ``max_tokens``. The
    first call loads the model, once in a process. Further parameters: see the fields of `ScanFields`.

    Parameters
    ----------
    documents : sequence of Document, optional
        The documents to scan; with a first stage, those that contain its chunks. They are copied, without
        duplicates.
    retriever : Runnable, optional
        First stage, which finds the documents to scan: a retriever, or another runnable from a string to
        documents.
    candidate_documents : int, optional
        Maximum number of documents to scan, in the order of the first stage. Default: all that it returns.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown field or a value out of range, or if both documents and first stage are missing.
    """

    model_config = ConfigDict(extra="forbid")  # the base class allows extra fields

    retriever: SkipValidation[Runnable[str, list[Document]] | None] = None
    candidate_documents: int | None = Field(default=None, ge=1, strict=True)

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **fields: Any) -> Self:  # noqa: ANN401
        """Scan these whole documents, pages or chunks, all of them for every query.

        ``fields`` are the other fields of the class.
        """
        return cls(documents=list(documents), **fields)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        ids: Sequence[str | None] | None = None,
        **fields: Any,  # noqa: ANN401
    ) -> Self:
        """Scan these texts, all of them for every query.

        Parameters
        ----------
        texts : iterable of str
            Whole documents.
        metadatas, ids : sequence, optional
            One for each text.
        **fields
            Other fields of the class.

        Raises
        ------
        ValueError
            If there are more or fewer ``metadatas`` or ``ids`` than texts.
        """
        texts = list(texts)
        for name, values in (("metadatas", metadatas), ("ids", ids)):
            if values is not None and len(values) != len(texts):
                raise ValueError(f"{name}: got {len(values)} for {len(texts)} texts; expected one for each")
        rows = zip(texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), strict=True)
        documents = [Document(page_content=text, metadata=own, id=name) for text, own, name in rows]
        return cls(documents=documents, **fields)

    @classmethod
    def from_retriever(
        cls,
        retriever: Runnable[str, list[Document]],
        *,
        documents: Iterable[Document] | None = None,
        candidate_documents: int | None = None,
        **fields: Any,  # noqa: ANN401
    ) -> Self:
        """Scan what another retriever finds.

        Parameters
        ----------
        documents : iterable of Document, optional
            Whole documents. If the first stage returns a chunk of one of them, all of it is scanned, with the
            other pages of the same file. Default: the documents that the first stage returns are scanned.
        retriever, candidate_documents, **fields
            Fields of the class.
        """
        return cls(
            retriever=retriever,
            documents=None if documents is None else list(documents),
            candidate_documents=candidate_documents,
            **fields,
        )

    @model_validator(mode="after")
    def _check_input(self) -> Self:
        if self.documents is None and self.retriever is None:
            raise ValueError(
                "documents: got neither documents nor a retriever; expected at least one: from_documents(...), "
                "from_texts(...) or from_retriever(...)"
            )
        if self.retriever is not None and not isinstance(self.retriever, Runnable):
            raise TypeError(
                f"retriever: got {type(self.retriever).__name__}; expected a LangChain retriever or another "
                "runnable (wrap a function in langchain_core.runnables.RunnableLambda)"
            )
        if self.candidate_documents is not None and self.retriever is None:
            raise ValueError(
                f"candidate_documents: got {self.candidate_documents} without a first stage; expected a "
                "retriever as well, since without one all documents are scanned"
            )
        return self

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add copies of documents, which replace those with the same id.

        Returns
        -------
        list of str
            Their ids; a document without an id gets a digest of its text and metadata.
        """
        new = {document.id: document for document in own_copies(documents)}
        with _writing:
            known = {document.id: document for document in self.documents or ()}
            self.documents = tuple((known | new).values())
        return [str(name) for name in new]

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by their ids.

        Raises
        ------
        ValueError
            If an id is unknown; then nothing is deleted.
        """
        gone = {ids} if isinstance(ids, str) else set(ids)
        with _writing:
            documents = self.documents or ()
            unknown = gone - {document.id for document in documents}
            if unknown:
                raise ValueError(
                    f"ids: got {sorted(map(str, unknown))[:5]}; expected ids of documents that are here"
                )
            self.documents = tuple(document for document in documents if document.id not in gone)

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        self._check_call(input, kwargs)  # before any event
        return super().invoke(input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        self._check_call(input, kwargs)
        return await super().ainvoke(input, config, **kwargs)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        found = None
        if self.retriever is not None:
            found = self.retriever.invoke(query, {"callbacks": run_manager.get_child()})
        return self._scan(query, self._texts(found), self._search(arguments))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        search = self._search(arguments)
        try:
            found = None
            if self.retriever is not None:
                found = await self.retriever.ainvoke(query, {"callbacks": run_manager.get_child()})
            return await off_loop(lambda stop: self._scan(query, self._texts(found), search, stop))
        except asyncio.CancelledError as error:
            await run_manager.on_retriever_error(error)  # the base class handles only Exception
            raise

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        params["ls_embedding_provider"] = "spscanner-rag"
        params["ls_embedding_model"] = self._search().choice.name
        return params

    def _check_call(self, query: object, arguments: dict[str, Any]) -> None:
        for name in arguments:
            if name not in _ARGUMENTS + _OF_THE_FRAMEWORK:
                raise TypeError(
                    f"invoke: got an unknown argument {name!r}; expected one of {', '.join(_ARGUMENTS)}, or a "
                    "field set at construction"
                )
        require_query(query)
        self._search({name: value for name, value in arguments.items() if name in _ARGUMENTS})

    def _texts(self, found: object) -> list[TextToScan]:
        """The texts to scan: all, or those that the first stage found, if there is one."""
        held = self._held_documents()
        if self.retriever is None:
            return held.texts
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise TypeError(f"the first stage returned {type(found).__name__}; expected a list of Documents")
        for document in found:
            require_document(document, "the first stage's documents")
        return held.chosen(found)[: self.candidate_documents]
