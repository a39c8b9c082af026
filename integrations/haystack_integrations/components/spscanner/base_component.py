"""What the ranker and the extractor share: their fields, calls and storage."""

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from haystack import Document, component, default_from_dict, default_to_dict
from pydantic import SkipValidation

from haystack_integrations.components.spscanner.documents import (
    DocumentAnswer,
    read_documents,
    unique_documents,
)
from spscanner_rag.retrieval import ScanFields, SentenceSearch, without_token
from spscanner_rag.scorers import Cancelled, check_query, never


class ComponentFields(ScanFields):
    """The fields of the components."""

    limits: ClassVar = ("top_k", "top_k_per_document")

    top_k: SkipValidation[int | float | str | None] = None
    top_k_per_document: SkipValidation[int | None] = None


class BaseComponent:
    """Reads documents for a query.

    Its arguments are saved and restored with a pipeline. A subclass names it instead of
    calling ``super()``, which fails in classes that ``component`` makes.
    """

    fixed_fields: ClassVar[dict[str, Any]] = {}
    """Fields whose values a component does not leave to the user."""

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401
        self._fields = ComponentFields(**fields)

    def warm_up(self) -> None:
        """Load the model, once per process."""
        self._fields.sentence_search().choice.resolve()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Answer from documents, which do not change.

        Parameters
        ----------
        query : str
            The question; ``ValueError`` if it is blank.
        documents : list of Document
            What is read.
        top_k : int, optional
            Replaces the component's.
        """
        results = self.answer(query, unique_documents(documents), top_k)
        return {"documents": results}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """`run` off the event loop.

        Cancelling the task ends the scan.
        """
        answer = partial(self.answer, query, unique_documents(documents), top_k)
        results = await self._fields.sentence_search().off_loop(answer)
        return {"documents": results}

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, without an access token.

        A pipeline refuses to save objects among them.
        """
        arguments: dict[str, Any] = {}
        for name in sorted(self._fields.model_fields_set):
            value = getattr(self._fields, name)
            if name == "model_kwargs":
                value = without_token(value)
            arguments[name] = str(value) if isinstance(value, Path) else value
        return default_to_dict(self, **arguments)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the component from what `to_dict` returned."""
        return default_from_dict(cls, data)

    def answer(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        """Return the results for a query.

        `run_async` calls it in a worker thread.
        """
        check_query(query)
        search = self._search(top_k, self.fixed_fields)
        texts = read_documents(documents)
        return search.answer(query, texts, DocumentAnswer, cancelled)

    def _search(
        self, top_k: int | None, fixed_fields: dict[str, Any] | None = None
    ) -> SentenceSearch:
        """The search of one call."""
        arguments: dict[str, Any] = {}
        if top_k is not None:
            arguments["top_k"] = top_k
        return self._fields.sentence_search(arguments | (fixed_fields or {}))
