"""The lexical channel: token classes by hand, and the prior against a slow BM25."""

import itertools
import re

import numpy as np
import Stemmer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.match import LexicalMatch, MatchOptions, match_query
from spscanner_rag.lexical.words import index_words, query_stems
from tests.lexical.slow_bm25 import slow_bm25, slow_idf, slow_moments, stems


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


@settings(max_examples=200)
@given(
    st.lists(st.text(st.sampled_from("ab _-. \nйаλ\ud800"), max_size=12), max_size=6),
    st.text(st.sampled_from("ab _-йаλ\ud800 "), max_size=8),
    st.data(),
)
def test_class_of_the_word_of_the_last_character(
    units: list[str], query: str, data: st.DataObject
) -> None:
    joined = "".join(units)
    cuts = sorted(
        data.draw(st.sets(st.integers(0, len(joined)), max_size=8)) | {0, len(joined)}
    )
    tokens = list(itertools.pairwise(cuts))
    wanted = set(query_stems(query))
    stem = Stemmer.Stemmer("english").stemWord
    words = []  # words do not extend beyond the end of a unit
    offset = 0
    for unit in units:
        words += [
            (w.start() + offset, w.end() + offset, stem(w.group().lower()))
            for w in re.finditer(r"\w+", unit)
        ]
        offset += len(unit)
    expected = []
    for start, end in tokens:
        holding = [s for a, b, s in words if start < end and a < end <= b]
        expected.append(bool(holding) and holding[0] in wanted)
    found = match(units, query, tokens)
    assert (found.token_classes > 0).tolist() == expected
    assert found.token_classes.dtype == np.uint8


def slow_prior(
    units: list[str], query: str, reach: int, least_units: int
) -> NDArray[np.float64]:
    """Z-scores of BM25 of each unit with its neighbours within reach, as if there were ``least_units`` units."""
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


@settings(max_examples=500)
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
