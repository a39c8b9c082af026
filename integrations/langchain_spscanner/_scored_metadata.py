"""The metadata of a result, which equal those with other scores."""

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from langchain_spscanner._document_metadata import ALL_SCORE_KEYS


class ScoredMetadata(dict[str, Any]):
    """The metadata of a result.

    Scores do not affect equality, so `MultiQueryRetriever` keeps a sentence once. It is
    not a subclass of Document, because a LangGraph checkpoint restores only LangChain's
    own classes.
    """

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoredMetadata):
            return super().__eq__(other)
        return self.without_scores() == other.without_scores()

    @override
    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # mutable, like dict

    def without_scores(self) -> dict[str, Any]:
        """Return the entries that do not depend on the query."""
        return {key: self[key] for key in self if key not in ALL_SCORE_KEYS}


def scored_document(
    text: str, metadata: Mapping[str, Any], name: str | None
) -> Document:
    """A document with `ScoredMetadata`."""
    document = Document(page_content=text, id=name)
    # Not in the call, because pydantic would turn it into a plain dict.
    document.metadata = ScoredMetadata(metadata)
    return document
