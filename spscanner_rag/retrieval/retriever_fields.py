"""The fields that the retrievers of all frameworks share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, get_args

from pydantic import SkipValidation, model_validator

from spscanner_rag.retrieval.first_stage import OwnFirstStage
from spscanner_rag.retrieval.read_bounds import ReadBounds, ReadTokens
from spscanner_rag.retrieval.scan_fields import ScanFields
from spscanner_rag.retrieval.search import SentenceSearch


class RetrieverFields(ScanFields):
    """What chooses the documents to read, and how many are read.

    A subclass describes in `other_stages` the first stages of its framework.
    """

    other_stages: ClassVar[tuple[type, str]]
    """The class of the framework's first stages, and its description in errors."""

    first_stage: SkipValidation[Any] = "bm25"
    """What chooses the documents to read. "bm25": BM25 of their sentences, and with
    an encoder also their best sentence's meaning (then all texts are encoded once,
    which takes minutes for a thousand). "none": all are read. A retriever of the
    framework: the documents that contain what it finds are read, or else what it
    finds."""

    retriever: SkipValidation[Any] = None
    """Another name of ``first_stage`` for a retriever."""

    read_documents: SkipValidation[int | None] = 10
    """Maximum number of documents that are read for a question after a first stage;
    None for no bound."""

    read_tokens: SkipValidation[ReadTokens] = "auto"
    """Maximum number of their tokens; "auto": 200,000, on a CPU 100,000; None for no
    bound. Four ASCII characters, or a UTF-8 byte of another, count as one. A
    document that would exceed it is left out, except the best one."""

    show_progress: bool | None = None
    """Whether a bar on standard error shows how many documents are prepared, when the
    retriever is made from documents or persisted. None: if that is a terminal."""

    @property
    def stage(self) -> Any:  # noqa: ANN401 - of the framework's class, or our name of one
        """The first stage, under whichever name it was passed."""
        if self.retriever is not None:
            return self.retriever
        return "bm25" if self.first_stage is None else self.first_stage

    @model_validator(mode="after")
    def _check_first_stage(self) -> Self:
        kind, expected = self.other_stages
        name = "first_stage" if self.retriever is None else "retriever"
        if self.retriever is not None and "first_stage" in self.model_fields_set:
            raise ValueError(
                "retriever: got first_stage as well; expected one of them: they mean"
                " the same"
            )
        if isinstance(self.stage, str) and self.stage not in get_args(OwnFirstStage):
            raise ValueError(
                f'{name}: got {self.stage!r}; expected "bm25", "none" or a retriever'
            )
        if not isinstance(self.stage, str | kind):
            raise TypeError(
                f"{name}: got {type(self.stage).__name__}; expected {expected}"
            )
        return self

    def sentence_search(
        self, arguments: Mapping[str, Any] | None = None
    ) -> SentenceSearch:
        """Make the search that the fields describe, with its first stage and bounds."""
        search = super().sentence_search(arguments)
        bounds = ReadBounds(self.read_documents, self.read_tokens)
        return replace(
            search,
            first_stage=self.stage,
            bounds=bounds,
            show_progress=self.show_progress,
        )
