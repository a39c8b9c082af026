"""Search as in the framework classes, without their options, and without scanners that other tests loaded."""

from collections.abc import Sequence
from typing import Any

from spscanner_rag.retrieval import shared_scanners
from spscanner_rag.retrieval.answers import Hit
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import Piece, join_pieces
from spscanner_rag.retrieval.search import Selection, score
from spscanner_rag.scorers import Scorer


def joined(texts: Sequence[str]) -> list[JoinedText]:
    """Whole documents, each as a separate text."""
    return join_pieces(
        [
            Piece(text=text, key=str(n), source=n, start=0)
            for n, text in enumerate(texts)
        ]
    )


def search(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    choose: Selection,
    **options: Any,
) -> list[Hit]:
    """The hits that ``choose`` takes from the result of `score`.

    ``options`` are its other arguments.
    """
    return score(scorer, query, texts, choose, **options).hits(choose)


def forget_shared_scanners() -> None:
    """Begin as in a process that has not loaded any scanner."""
    for kept in (
        shared_scanners._shared,
        shared_scanners._locks,
        shared_scanners._unhashable,
    ):
        kept.clear()
