"""Search as the framework classes do it, without their options."""

from collections.abc import Sequence
from typing import Any

from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.search import Hit, Selection, score
from spscanner_rag.scorers import Scorer


def search(
    scorer: Scorer, query: str, texts: Sequence[JoinedText], choose: Selection, **options: Any
) -> list[Hit]:
    """The hits of ``choose`` in what `score` gives; ``options`` are its other arguments."""
    return score(scorer, query, texts, choose, **options).hits(choose)
