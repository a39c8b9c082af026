"""The retriever: finds the sentences of whole documents that answer a query."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict, SkipValidation, model_validator
from typing_extensions import override

from langchain_spscanner._document_answer import DocumentAnswer
from langchain_spscanner._document_copies import unique_copies
from langchain_spscanner._document_fields import DocumentFields
from langchain_spscanner._document_filter import Filter, predicate_of
from langchain_spscanner._document_host import DocumentHost
from spscanner_rag.retrieval import (
    HeldCorpus,
    RetrieverFields,
    other_name_hint,
)
from spscanner_rag.scorers import Cancelled, check_query, never

_SELECTING = ("k", "threshold", "max_tokens")
_ARGUMENTS = (*_SELECTING, "filter")
_OF_THE_FRAMEWORK = ("run_id", "verbose")  # arguments of BaseRetriever.invoke itself


class SPScannerRetriever(RetrieverFields, DocumentFields, BaseRetriever):
    """Reads documents whole and returns the sentences that answer a query.

    Each result is a `Document` with the metadata of the document that contains it, plus
    ``relevance_score`` (from 0 to 1), ``spscanner_logit``, ``start_index`` and
    ``end_index`` (its span in that document, in characters) and ``spscanner_id``, which
    is also its ``id``. A document with an integer ``start_index`` in its metadata is a
    chunk; its spans are offsets in the document that it was cut from.

    If there are more documents than ``read_documents`` and ``read_tokens`` allow, a
    first stage chooses those that are read for a question. The words of all documents
    are counted when the retriever is built, and those of documents added later with the
    next question. Scores are relative to all documents, whichever are read.

    ``invoke``, ``ainvoke``, ``batch`` and ``abatch`` also accept ``k``, ``threshold``,
    ``max_tokens`` and ``filter``. The first call loads the model, once per process.
    Further parameters: those of `DocumentFields`.

    Parameters
    ----------
    documents : sequence of Document, optional
        The documents to scan; if the first stage is a LangChain retriever, those that
        contain the chunks that it finds. They are copied, without duplicates.
    first_stage, retriever, read_documents, read_tokens
        As for `RetrieverFields`; a first stage is a retriever or another runnable from
        a string to documents.
    filter : callable or dict, optional
        Only documents for which the callable returns true, or whose metadata have all
        of these values, give results. A value may be operators, such as ``{"year":
        {"$gte": 2020}}``: $eq, $ne, $gt, $gte, $lt, $lte, $in and $nin; $and, $or and
        $not join filters. Scores remain relative to all documents. If no
        document passes, the result is empty.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown field or a value out of range, or if both documents and first
        stage are missing.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> lease = Document("The lease began in May. Ada Byrne signed it.")
    >>> retriever = SPScannerRetriever.from_documents([lease], k=1)
    >>> best = retriever.invoke("Who signed the lease?")[0]
    >>> best.page_content, best.metadata["start_index"], best.metadata["end_index"]
    ('Ada Byrne signed it.', 24, 44)
    """

    model_config = ConfigDict(extra="forbid")  # the base class allows extra fields

    other_stages: ClassVar = (
        Runnable,
        (
            "a LangChain retriever or another runnable (wrap a function in"
            " langchain_core.runnables.RunnableLambda)"
        ),
    )

    filter: SkipValidation[Filter | None] = None

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **fields: Any) -> Self:  # noqa: ANN401
        """Scan these whole documents, pages or chunks.

        ``fields`` are the other fields of the class. If the first stage chooses among
        the documents for each question, `index` is called.
        """
        retriever = cls(documents=list(documents), **fields)
        retriever.index()
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Sequence[dict[str, Any]] | None = None,
        ids: Sequence[str | None] | None = None,
        **fields: Any,  # noqa: ANN401
    ) -> Self:
        """Scan these whole texts.

        ``fields`` are the other fields of the class. ``metadatas`` and ``ids`` must
        have a value for each text if they are passed, else ``ValueError``.
        """
        texts = list(texts)
        if metadatas is None:
            metadatas = [{}] * len(texts)
        if ids is None:
            ids = [None] * len(texts)
        for option, values in (("metadatas", metadatas), ("ids", ids)):
            if len(values) != len(texts):
                raise ValueError(
                    f"{option}: got {len(values)} for {len(texts)} texts; expected one"
                    " for each"
                )
        documents = []
        for text, metadata, name in zip(texts, metadatas, ids, strict=True):
            documents.append(Document(page_content=text, metadata=metadata, id=name))
        return cls.from_documents(documents, **fields)

    @classmethod
    def from_retriever(
        cls,
        retriever: Runnable[str, list[Document]],
        *,
        documents: Iterable[Document] | None = None,
        **fields: Any,  # noqa: ANN401
    ) -> Self:
        """Scan what another retriever finds.

        ``fields`` are the other fields of the class.

        If it finds a chunk of one of the whole ``documents``, that document is scanned
        as a whole, with the other pages of the same file. Without ``documents``, only
        what it finds is scanned.
        """
        if documents is not None:
            documents = list(documents)
        return cls(retriever=retriever, documents=documents, **fields)

    @classmethod
    def load(cls, path: str | Path, **fields: Any) -> Self:  # noqa: ANN401
        """Read what `persist` wrote.

        It stores none of the ``fields`` of the class; give all but ``documents``.

        The retriever uses the folder's arrays from disk: keep the folder as long as the
        retriever. ``ValueError`` if the folder is missing, damaged, or was not written
        by `persist` of this class.
        """
        retriever = cls(documents=(), **fields)
        retriever._hold(HeldCorpus.load(path, DocumentHost(retriever.document_key)))
        retriever.corpus().counted()
        return retriever

    @model_validator(mode="after")
    def _check_input(self) -> Self:
        if self.documents is None and isinstance(self.stage, str):
            raise ValueError(
                "documents: got neither documents nor a retriever; expected at least"
                " one: from_documents(...), from_texts(...) or from_retriever(...)"
            )
        predicate_of(self.filter)
        self.corpus().counted()
        return self

    def index(self) -> None:
        """Prepare the documents that "bm25" chooses from, so that no question has to.

        A scanner with an encoder, such as the bundled one, is loaded and reads each
        document once, with a bar on a terminal. Nothing is done if a question reads all
        documents anyway. Documents that are added later are prepared with the next
        question, or by another call.
        """
        self.sentence_search().index(self.corpus())

    def persist(self, path: str | Path) -> None:
        """Write the documents, and what is prepared of them, to a folder.

        They are written completely or not at all. The scanner is loaded for this, and
        prepares what is missing, with a bar on a terminal: sentences, tokens, words
        and, with an encoder such as the bundled one's, vectors. The folder
        must be new, empty, or written by `persist` before; its content is replaced.
        ``ValueError`` if it holds anything else, or if metadata hold values that JSON
        cannot keep.
        """
        self.sentence_search().persist(self.corpus(), path)

    def add_documents(
        self, documents: Iterable[Document], ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """Add copies of documents, and return their ids.

        They replace documents with the same id. Questions that are already being
        answered still see the documents as they were.

        Parameters
        ----------
        ids : sequence of str or None, optional
            One for each document. Default: its own id, or else a digest of its text and
            metadata.

        Raises
        ------
        ValueError
            For two different documents with the same id, or more or fewer ids than
            documents; nothing is added.
        """
        documents = list(documents)
        if ids is not None:
            if len(ids) != len(documents):
                raise ValueError(
                    f"ids: got {len(ids)} for {len(documents)} documents; expected one"
                    " for each"
                )
            documents = [
                _with_id(document, name)
                for document, name in zip(documents, ids, strict=True)
            ]
        new_documents = unique_copies(documents)
        with HeldCorpus.changing:
            self._hold(self.corpus().adding(new_documents))
        return [str(document.id) for document in new_documents]

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by their ids.

        An unknown id raises ``ValueError``, and nothing is deleted.
        """
        with HeldCorpus.changing:
            self._hold(self.corpus().deleting(ids))

    def _hold(self, corpus: HeldCorpus[Document]) -> None:
        self.documents = corpus.items
        self._held = corpus

    @override
    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        # Checked before any event.
        arguments = self._checked_call(input, kwargs)
        return super().invoke(input, config, **arguments)

    @override
    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        arguments = self._checked_call(input, kwargs)
        return await super().ainvoke(input, config, **arguments)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **checked: Any
    ) -> list[Document]:
        found_documents = None
        if isinstance(self.stage, Runnable):
            config = RunnableConfig(callbacks=run_manager.get_child())
            found_documents = self.stage.invoke(query, config)
        return list(checked["answer"](found_documents))

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        **checked: Any,
    ) -> list[Document]:
        try:
            found_documents = None
            if isinstance(self.stage, Runnable):
                config = RunnableConfig(callbacks=run_manager.get_child())
                found_documents = await self.stage.ainvoke(query, config)
            answer = partial(checked["answer"], found_documents)
            return list(await checked["search"].off_loop(answer))
        except asyncio.CancelledError as error:
            # The base class handles only Exception.
            await run_manager.on_retriever_error(error)
            raise

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        search = kwargs.get("search") or self.sentence_search()
        params["ls_embedding_provider"] = "spscanner-rag"
        params["ls_embedding_model"] = search.choice.name
        return params

    def _checked_call(self, query: object, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check the arguments of a call.

        Returns those that the base class passes on to the methods above.
        """
        for name in arguments:
            if name not in _ARGUMENTS + _OF_THE_FRAMEWORK:
                hint = other_name_hint(name, _ARGUMENTS, self.limits)
                raise TypeError(
                    f"invoke: got an unknown argument {name!r}; {hint}; other fields"
                    " are set at construction"
                )
        text = check_query(query)
        admits = predicate_of(arguments.pop("filter", self.filter))
        selecting = {}
        for name in _SELECTING:
            if name in arguments:
                selecting[name] = arguments.pop(name)
        search = self.sentence_search(selecting)

        def answer(
            found_documents: object, cancelled: Cancelled = never
        ) -> list[Document]:
            return search.answer_from(
                self.corpus(), text, DocumentAnswer, admits, found_documents, cancelled
            )

        return {**arguments, "search": search, "answer": answer}


def _with_id(document: Document, name: str | None) -> Document:
    """The document, or a copy with another id."""
    return document if name is None else document.model_copy(update={"id": name})
