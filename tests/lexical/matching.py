"""The lexical match of units with a query, with tokens at known places."""

import re

import numpy as np

from spscanner_rag.lexical.lexical_scores import MatchOptions
from spscanner_rag.lexical.match import LexicalMatch, match_query
from spscanner_rag.lexical.words import index_words


def match(
    units: list[str],
    query: str,
    tokens: list[tuple[int, int]] | None = None,
    least_units: int = 0,
) -> LexicalMatch:
    """Match with tokens at the given character positions of the joined units.

    By default, at its words.
    """
    if tokens is None:
        tokens = [found.span() for found in re.finditer(r"\S+", "".join(units))]
    spans = np.array(tokens, np.int32).reshape(-1, 2)
    return match_query(
        index_words(units),
        query,
        spans[:, 0],
        spans[:, 1],
        MatchOptions(True, least_units),
    )
