"""The documents that are returned: the scores in their metadata do not make two of them different."""

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from spscanner_rag.retrieval import SCORE_KEYS

SCORE_KEY = "relevance_score"
ALL_SCORE_KEYS = frozenset((SCORE_KEY, *SCORE_KEYS))
"""Metadata keys whose values depend on the question."""


class ScoredDocument(Document):
    """A document with the scores that it got for one question in its metadata.

    Two are equal if their text, their id and all other metadata are, so that a sentence that was found for two
    questions is one, for instance in ``MultiQueryRetriever``. It is serialized as a `Document`.
    """

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return (
            self.id == other.id
            and self.page_content == other.page_content
            and without_scores(self.metadata) == without_scores(other.metadata)
        )

    __hash__ = None  # type: ignore[assignment]  # mutable, like Document

    @classmethod
    @override
    def lc_id(cls) -> list[str]:
        return Document.lc_id()


def without_scores(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What of the metadata does not depend on the question."""
    return {key: value for key, value in metadata.items() if key not in ALL_SCORE_KEYS}
