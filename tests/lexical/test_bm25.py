"""BM25 of units and of the text around them, against a slow one."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.words import query_stems
from tests.lexical.matching import match
from tests.lexical.slow_bm25 import slow_bm25, slow_idf, slow_moments, stems


def slow_prior(
    units: list[str], query: str, reach: int, least_units: int
) -> NDArray[np.float64]:
    """Z-scores of BM25 of each unit and its neighbours, as if among ``least_units``."""
    n, bags = max(len(units), least_units), [set(stems(unit)) for unit in units]
    idf = {
        stem: slow_idf(n, sum(stem in bag for bag in bags))
        for stem in query_stems(query)
    }
    scores = slow_bm25([units], reach, idf)
    mean, spread = slow_moments(scores, least_units, reach)
    return (
        np.zeros(len(scores)) if spread < 1e-9 else (np.array(scores) - mean) / spread
    )


WORDS = st.sampled_from(
    "the ship ships Ship sailed sailing treaty 1911 Москва 東京 is , . \n _ snake_case"
    " — \ud800".split(" ")
)


TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@settings(max_examples=150)
@given(st.lists(TEXTS, max_size=12), TEXTS, st.integers(0, 24))
@example([], "ship", 3)
@example([""], "ship", 0)
@example(["ship"], "ship", 0)
@example(["ship"], "ship", 300)
@example(["ship", ""], "ship", 0)
@example(["It rained. ", "It snowed."], "?!", 0)
@example(["The ship. "] * 3, "ship", 0)
@example(["", "\n", " . "], "ship", 9)
@example(["ship ship", "treaty"], "", 3)
@example(["the ship", "is"], "the is", 0)
def test_prior_is_standardized_bm25(
    units: list[str], query: str, least_units: int
) -> None:
    found = match(units, query, least_units=least_units).scores
    assert (found.dtype, found.shape) == (np.float32, (len(units), 1 + len(REACH)))
    for column, reach in zip(found.T, (0, *REACH), strict=True):
        np.testing.assert_allclose(
            column, slow_prior(units, query, reach, least_units), atol=1e-4
        )
