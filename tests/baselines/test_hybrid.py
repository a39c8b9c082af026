"""Hybrids: standardized scores or reciprocal ranks of several scorers, fused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import rankdata, zscore

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Hybrid
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.hybrid import reciprocal_ranks, standardized
from spscanner_rag.baselines.late_chunking import LateChunking
from spscanner_rag.scorers import words_together
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.baselines.test_dense import LangChainLike
from tests.fakes import ScoredBy, logits_of

SCORES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)
FOUR = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest."
FOUR_UNITS = SentenceSegmenter().segment(FOUR)


class Given(ScoredBy):
    """Scores that are given in advance."""

    def __init__(self, *scores: float) -> None:
        self.scores = np.array(scores, np.float32)
        super().__init__(lambda query, text, units: self.scores[: len(units)])


@settings(max_examples=50, deadline=None)
@given(SCORES.map(np.array))
def test_ranks_and_standard_scores_as_scipy_has_them(
    scores: NDArray[np.float64],
) -> None:
    np.testing.assert_allclose(reciprocal_ranks(scores), 1 / (60 + rankdata(-scores)))
    if scores.std() > 0:
        np.testing.assert_allclose(standardized(scores), zscore(scores), atol=1e-12)
    else:
        assert not standardized(scores).any()


def test_sum_of_standard_scores() -> None:
    first, second = Given(1, 2, 3, 9), Given(40, 10, 30, 20)
    got = Hybrid([first, second, first]).raw_scores("q", FOUR, FOUR_UNITS)
    np.testing.assert_allclose(
        got, (2 * zscore(first.scores) + zscore(second.scores)) / 3, rtol=1e-5
    )


def test_sum_of_reciprocal_ranks() -> None:
    hybrid = Hybrid([Given(4, 3, 2, 1), Given(1, 2, 3, 4)], fusion="ranks")
    expected = [(1 / 61 + 1 / 64) / 2, (1 / 62 + 1 / 63) / 2] * 2
    expected[2:] = expected[1::-1]
    np.testing.assert_allclose(
        hybrid.raw_scores("q", FOUR, FOUR_UNITS), expected, rtol=1e-6
    )
    best = Hybrid([Given(2, 1)] * 2, fusion="ranks").score_units(
        "q", FOUR, FOUR_UNITS[:2]
    )
    assert 1 / (1 + np.exp(-best[0])) > 0.999  # first in every text


def test_a_baseline_is_fused_by_its_own_scores() -> None:
    bm25, other = BM25(), Given(0, 0, 0, 1)
    got = Hybrid([bm25, other]).raw_scores("otter", FOUR, FOUR_UNITS)
    expected = (
        zscore(bm25.raw_scores("otter", FOUR, FOUR_UNITS)) + zscore(other.scores)
    ) / 2
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_with_the_scanner(tiny_scanner: Scanner) -> None:
    hybrid = Hybrid([tiny_scanner, BM25()])
    assert hybrid.name == "hybrid:scanner+bm25"
    assert hybrid.count_tokens == tiny_scanner.count_tokens
    assert hybrid.score_units("otter", FOUR, FOUR_UNITS).shape == (4,)
    assert hybrid.units_of(FOUR) == tiny_scanner.units_of(FOUR)
    assert (
        Hybrid([BM25("chunk:2"), tiny_scanner]).units_of("a b c")[0].model_text
        == "a b "
    )
    assert len(Hybrid([tiny_scanner, BM25()], unit="document").units_of(FOUR)) == 1


@pytest.mark.parametrize(
    ("scorers", "arguments", "error"),
    [
        ([Given(1)], {}, ValueError),
        ([Given(1), 3], {}, TypeError),
        ([Given(1), Given(2)], {"fusion": "votes"}, ValueError),
    ],
)
def test_refused(
    scorers: list[Given], arguments: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error, match="expected"):
        Hybrid(scorers, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Dense, LateChunking])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    "texts", [[FOUR], [FOUR, "Snow.", "", "A heron. An otter."], ["Hail.", "Sleet."]]
)
def test_a_question_is_embedded_once_a_call(
    kind: type[Dense | LateChunking], together: bool, texts: list[str]
) -> None:
    embedder, other = LangChainLike(), BM25()
    hybrid = Hybrid([kind(embedder), other])
    requests = [
        ("Where do otters swim?", text, hybrid.units_of(text)) for text in texts
    ]
    collection = (
        words_together(hybrid, [units for _, _, units in requests])
        if together
        else None
    )
    got = hybrid.score_units_many(requests, collection=collection)
    assert embedder.questions == ["Where do otters swim?"]
    if collection is None:
        for request, logits in zip(requests, logits_of(got), strict=True):
            expected = (
                hybrid.score_units(*request) if request[2] else np.zeros(0, np.float32)
            )
            np.testing.assert_array_equal(logits, expected)
