"""The filter of a retriever: which documents may give results."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.documents import Document

Filter = Callable[[Document], bool] | Mapping[str, Any]
"""A function of a document, or metadata values that it must have."""

_MISSING = object()


def predicate_of(chosen_by: Filter | None) -> Callable[[Document], bool] | None:
    """A filter as a function, None if all documents pass."""
    if chosen_by is None or callable(chosen_by):
        return chosen_by
    if not isinstance(chosen_by, Mapping):
        raise TypeError(
            f"filter: got {type(chosen_by).__name__}; expected a function of a"
            " Document, or a dictionary of metadata values"
        )
    values = dict(chosen_by)

    def has_values(document: Document) -> bool:
        for key, value in values.items():
            if document.metadata.get(key, _MISSING) != value:
                return False
        return True

    return has_values
