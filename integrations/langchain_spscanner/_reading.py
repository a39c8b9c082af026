"""Which documents are read for a question: filtered by metadata, chosen by a first stage, within bounds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_spscanner._conversion import HeldDocuments, TextToScan
from langchain_spscanner._identity import require_document
from spscanner_rag.retrieval import (
    Corpus,
    ReadBounds,
    check_found,
    choose_texts,
    estimated_tokens,
    restrict,
)

Filter = Callable[[Document], bool] | Mapping[str, Any]

_MISSING = object()


def check_filter(value: object) -> None:
    """Raise ``TypeError`` for anything but a callable, a dictionary or None."""
    if value is not None and not callable(value) and not isinstance(value, Mapping):
        raise TypeError(
            f"filter: got {type(value).__name__}; expected a function of a Document, or a dictionary of metadata "
            "values"
        )


def read_all(held: HeldDocuments, chosen_by: Filter | None) -> list[TextToScan]:
    """All texts with a document that passes the filter; other documents in them give no results."""
    return list(_filtered(held.texts, chosen_by).values())


def read_best(
    held: HeldDocuments, query: str, corpus: Corpus, bounds: ReadBounds, chosen_by: Filter | None
) -> list[TextToScan]:
    """The texts to read by the retriever's own first stage; ``corpus`` has the counts of all held texts."""
    admitted = _filtered(held.texts, chosen_by)
    found = choose_texts(corpus, query, bounds, sorted(admitted))
    return [admitted[own.number]._replace(retrieval_score=own.score) for own in found]


def read_found(
    held: HeldDocuments, found: object, bounds: ReadBounds, chosen_by: Filter | None
) -> list[TextToScan]:
    """The texts of the documents that another first stage found, in its order, as far as the bounds go.

    Raises ``TypeError`` if it found anything but a sequence of Documents.
    """
    documents = check_found(found, "Documents")
    for document in documents:
        require_document(document, "the first stage's documents")
    texts = list(_filtered(held.chosen(documents), chosen_by).values())
    kept = bounds.kept(estimated_tokens(text.joined.text) for text in texts)
    return [texts[number] for number in kept]


def _filtered(texts: Sequence[TextToScan], chosen_by: Filter | None) -> dict[int, TextToScan]:
    """Texts by index, restricted to the documents that pass."""
    if chosen_by is None:
        return dict(enumerate(texts))
    passes = _predicate(chosen_by)
    found = {}
    for number, text in enumerate(texts):
        documents = text.origin.documents
        joined = restrict(text.joined, lambda piece, documents=documents: passes(documents[piece]))  # type: ignore[misc]
        if joined is not None:
            found[number] = text._replace(joined=joined)
    return found


def _predicate(chosen_by: Filter) -> Callable[[Document], bool]:
    if callable(chosen_by):
        return chosen_by
    wanted = dict(chosen_by)
    return lambda document: all(
        document.metadata.get(key, _MISSING) == value for key, value in wanted.items()
    )
