"""Which documents are read for a question: filtered by metadata, chosen by a first stage, within bounds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_spscanner._conversion import TextToScan
from spscanner_rag.retrieval import Corpus, ReadBounds, choose_texts, estimated_tokens, restrict

Filter = Callable[[Document], bool] | Mapping[str, Any]

_MISSING = object()


def check_filter(value: object) -> None:
    """Raise ``TypeError`` for anything but a callable, a dictionary or None."""
    if value is not None and not callable(value) and not isinstance(value, Mapping):
        raise TypeError(
            f"filter: got {type(value).__name__}; expected a function of a Document, or a dictionary of metadata "
            "values"
        )


def filtered(texts: Sequence[TextToScan], chosen_by: Filter | None) -> dict[int, TextToScan]:
    """The texts with a document that passes the filter, by index; other documents in them give no results."""
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


def chosen(
    texts: Mapping[int, TextToScan], query: str, corpus: Corpus, bounds: ReadBounds
) -> list[TextToScan]:
    """The texts to read by the retriever's own first stage; the keys are indices in the corpus."""
    found = choose_texts(corpus, query, bounds, sorted(texts))
    return [texts[own.number]._replace(retrieval_score=own.score) for own in found]


def within(bounds: ReadBounds, texts: Sequence[TextToScan]) -> list[TextToScan]:
    """The texts that another first stage found, in its order, as far as the bounds go."""
    kept = bounds.kept(estimated_tokens(text.joined.text) for text in texts)
    return [texts[number] for number in kept]


def _predicate(chosen_by: Filter) -> Callable[[Document], bool]:
    if callable(chosen_by):
        return chosen_by
    wanted = dict(chosen_by)
    return lambda document: all(
        document.metadata.get(key, _MISSING) == value for key, value in wanted.items()
    )
