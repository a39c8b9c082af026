"""BM25 of surroundings: rare stems are looked up where they stand, with the scores of looking everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical import bm25
from spscanner_rag.lexical.bm25 import mean_words, scores_around, sums_around
from spscanner_rag.lexical.postings import QueryCounts, count_stems, merged, text_postings

texts_of_words = st.lists(
    st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=12), min_size=1, max_size=4
)


def counts_of(texts: list[list[list[int]]]) -> QueryCounts:
    parts = []
    for units in texts:
        words = np.array([word for unit in units for word in unit], np.int32)
        numbers = np.repeat(np.arange(len(units), dtype=np.int32), [len(unit) for unit in units])
        parts.append(text_postings(words, numbers, len(units)))
    return count_stems([merged(parts)], np.array([0, 1, 2, -1, 0, -1]), 3)


def scores_of(counts: QueryCounts) -> list[np.ndarray]:
    means = tuple(
        mean_words(sums_around(counts.words_per_unit, reach, counts.text_starts)) for reach in bm25.REACH
    )
    return list(scores_around(counts, np.array([0.7, 1.3, 2.9]), means))


@given(texts_of_words)
def test_rare_stems_score_as_frequent_ones(texts: list[list[list[int]]]) -> None:
    counts = counts_of(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "_RARE", 10**9)
        everywhere = scores_of(counts)
        patch.setattr(bm25, "_RARE", 0)
        for here, there in zip(scores_of(counts), everywhere, strict=True):
            np.testing.assert_array_equal(here, there)


def test_a_rare_stem_does_not_cost_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of([[[0], *[[3]] * 500, [1, 2], *[[5]] * 500]])
    means = (1.0, 1.0, 1.0)
    summed: list[int] = []

    def watch(values: np.ndarray, *rest: object) -> np.ndarray:
        summed.append(len(values))
        return sums_around(values, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(bm25, "sums_around", watch)
    assert len(list(scores_around(counts, np.array([0.7, 1.3, 2.9]), means))) == 3
    assert len(summed) == 3  # the units' words for each size, and nothing for each stem
