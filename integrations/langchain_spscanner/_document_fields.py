"""The fields that the retriever and the compressor share."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document
from pydantic import (
    Field,
    PrivateAttr,
    SkipValidation,
    field_serializer,
    field_validator,
)

from langchain_spscanner._document_copies import unique_copies
from langchain_spscanner._document_host import DocumentHost
from spscanner_rag.retrieval import HeldCorpus, ScanFields, without_token


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
        return None if value is None else unique_copies(value)

    @field_serializer("model_kwargs")
    def _without_token(self, value: dict[str, Any]) -> dict[str, Any]:
        return without_token(value)

    def corpus(self) -> HeldCorpus[Document]:
        """The documents as a corpus, which is replaced when they or the key change."""
        if self.documents is not None and not isinstance(self.documents, tuple):
            self.documents = tuple(self.documents)
        documents = self.documents or ()
        host = DocumentHost(self.document_key)
        corpus = self._held or HeldCorpus(host)
        if corpus.items is not documents or corpus.host != host:
            corpus = corpus.replaced(host, documents)
        self._held = corpus
        return corpus
