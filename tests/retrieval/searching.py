"""Search as framework classes do, without their options and shared scanners."""

from collections.abc import Sequence
from typing import Any

from spscanner_rag.results import Selection
from spscanner_rag.retrieval import Piece, join_pieces, shared_scanners
from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.scored_texts import score_texts
from spscanner_rag.scorers import Scorer


def joined(texts: Sequence[str]) -> list[JoinedText]:
    """Whole documents, each as a separate text."""
    return join_pieces(
        [
            Piece(text=text, key=str(number), source=number, start=0)
            for number, text in enumerate(texts)
        ]
    )


def best_first(**options: Any) -> Selection:
    """A selection in the order of the framework classes."""
    return Selection(**({"order": "score"} | options))


def search(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    selection: Selection,
    **options: Any,
) -> list[Hit]:
    """The hits that ``selection`` takes from the result of `score_texts`.

    ``options`` are its other arguments.
    """
    scored = score_texts(scorer, query, texts, selection, **options)
    return scored.hits(selection)


def forget_shared_scanners() -> None:
    """Begin as in a process that has not loaded any scanner."""
    shared_scanners._shared.clear()
    shared_scanners._locks.clear()
    shared_scanners._unhashable.clear()
