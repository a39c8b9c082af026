"""The fields of LangChain's classes."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from pydantic import Field, PrivateAttr, SkipValidation, field_serializer, field_validator

from langchain_spscanner._documents import DocumentHost, own_copies
from spscanner_rag.retrieval import HeldCorpus, ScanFields


class DocumentFields(ScanFields):
    """Which model scores, which sentences are selected, and what is returned.

    Scores are metadata of the results: ``relevance_score``, ``spscanner_logit`` and, on request,
    ``spscanner_retrieval_score``.
    """

    limits: ClassVar = ("k", "k_per_document")

    k: SkipValidation[int | float | str | None] = 50
    """Maximum number of sentences; below 1 a share of all, but at least 10; "elbow" or "elbow:5-30" for as
    many as are above the steepest fall of the scores; None for no limit."""

    k_per_document: SkipValidation[int | None] = None
    """Maximum number of sentences of each document, neighbours not counted; None for no limit."""

    document_key: str | None = "source"
    """Documents with the same value under this metadata key are read as one, such as the pages of a file, sorted
    by page number if all have one. None: each is read alone."""

    documents: SkipValidation[Sequence[Document] | None] = Field(default=None, repr=False)

    _held: HeldCorpus[Document] | None = PrivateAttr(default=None)

    @field_validator("documents", mode="before")
    @classmethod
    def _copy_documents(cls, value: Iterable[Document] | None) -> tuple[Document, ...] | None:
        return None if value is None else own_copies(value)

    @field_serializer("model_kwargs")
    def _without_token(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: option for name, option in value.items() if name != "token"}

    def _corpus(self) -> HeldCorpus[Document]:
        """The documents as a corpus; another one when they or the key change."""
        if self.documents is not None and not isinstance(self.documents, tuple):
            self.documents = tuple(self.documents)
        held, documents, host = self._held, self.documents or (), DocumentHost(self.document_key)
        if held is None:
            held = self._held = HeldCorpus(host, documents)
        elif held.items is not documents or held.host != host:
            held = self._held = held.replaced(host, documents)
        return held
