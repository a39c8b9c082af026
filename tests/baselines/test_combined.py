"""Cascades: the second stage reads exactly the best units of the first, which stay above the rest."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import rankdata, zscore

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Cascade, Hybrid
from spscanner_rag.baselines.cascade import UNREAD_LOGIT
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.hybrid import reciprocal_ranks, standardized
from spscanner_rag.baselines.late_chunking import LateChunking
from spscanner_rag.baselines.names import check_name, scorer_of
from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.register import LoadOptions
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.scorers import Cancelled, ScanCancelled, score_batch, words_together
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.baselines.test_dense import LangChainLike
from tests.fakes import ScoredBy, logits_of

TEXT = (
    "The otter swims. A heron flies over the lake. Rain fell all day. Otters and herons"
    " rest. It was late."
)
UNITS = SentenceSegmenter().segment(TEXT)
SCORES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


def scored(scores: dict[str, float]) -> ScoredBy:
    """Scores units by their texts."""
    return ScoredBy(
        lambda query, text, units: [
            scores[text[unit.start : unit.end]] for unit in units
        ]
    )


class Pairs(Pointwise):
    """A reranker that remembers what it has read and prefers short units."""

    name = "pairs"

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Pair] = []

    def score_pairs(
        self, pairs: Sequence[Pair], cancelled: Cancelled
    ) -> NDArray[np.float32]:
        self.read += pairs
        return np.array([-len(text) for _, text in pairs], np.float32)


@settings(max_examples=60, deadline=None)
@given(SCORES, st.data())
def test_the_best_of_the_first_by_the_second_above_the_rest(
    first: list[float], data: st.DataObject
) -> None:
    second = data.draw(
        st.lists(st.integers(-50, 50), min_size=len(first), max_size=len(first))
    )
    best = data.draw(st.integers(1, len(first)))
    words = [f"w{number}" for number in range(len(first))]
    text = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])]).tolist()
    units = [
        Unit(start, start + len(word), word)
        for start, word in zip(starts, words, strict=True)
    ]
    stages = [scored(dict(zip(words, own, strict=True))) for own in (first, second)]
    got = Cascade(*stages, best=best).score_units("q", text, units)
    by_first = sorted(range(len(first)), key=lambda i: -first[i])
    read, rest = by_first[:best], by_first[best:]
    assert [got[i] for i in read] == [second[i] for i in read]
    assert sorted(rest, key=lambda i: -got[i]) == rest
    assert all(got[i] < min([UNREAD_LOGIT, *(got[j] for j in read)]) for i in rest)
    if best == len(first):
        np.testing.assert_array_equal(got, stages[1].score_units("q", text, units))


def test_texts_asked_together_share_the_bound() -> None:
    texts = [TEXT, "A heron. The heron rests.", "Nothing is said here."]
    second = Pairs()
    cascade = Cascade(BM25(), second, best=3)
    units = [cascade.units_of(text) for text in texts]
    requests = [("heron", text, cut) for text, cut in zip(texts, units, strict=True)]
    logits = np.concatenate(
        logits_of(
            score_batch(cascade, requests, collection=words_together(cascade, units))
        )
    )
    assert len(second.read) == 3
    assert {text for _, text in second.read} <= {
        t[u.start : u.end] for t, c in zip(texts, units, strict=True) for u in c
    }
    assert (np.sort(logits)[:-3] < np.sort(logits)[-3:].min()).all()
    alone = Pairs()
    score_batch(Cascade(BM25(), alone, best=3), requests)
    assert len(alone.read) == 3 + 2 + 1, (
        "without a collection each text is one of its own"
    )


def test_keyb_reads_the_best_blocks_once_in_document_order() -> None:
    second = Pairs()
    cascade = Cascade(BM25(), second, tokens=9)
    cascade.count_tokens = lambda text: len(text.split())
    (document,) = cascade.units_of(TEXT)
    logits = cascade.score_units("Otters and herons", TEXT, [document])
    assert second.read == [
        ("Otters and herons", "The otter swims.\nOtters and herons rest.")
    ]
    assert logits.tolist() == [-len(second.read[0][1])]
    assert cascade.name.endswith("@9tokens")


def test_keyb_on_short_units_is_the_second_alone_and_never_reads_nothing() -> None:
    cascade = Cascade(BM25(), Pairs(), tokens=1, unit="sentence")
    np.testing.assert_array_equal(
        cascade.score_units("otter", TEXT, UNITS),
        Pairs().score_units("otter", TEXT, UNITS),
    )
    second = Pairs()
    Cascade(BM25(), second, tokens=1).score_units(
        "otters rest", TEXT, [Unit(0, len(TEXT), TEXT)]
    )
    assert [text for _, text in second.read] == ["Otters and herons rest."]


def test_names() -> None:
    made = scorer_of("cascade:bm25>hybrid:bm25+scanner@7", LoadOptions("sentence"))
    assert isinstance(made, Cascade)
    assert (made.best, made.tokens, made.scorers[1].name) == (
        7,
        None,
        "hybrid:bm25+scanner",
    )  # type: ignore[attr-defined]
    keyb = scorer_of("cascade:bm25>bm25@480tokens", LoadOptions("document"))
    assert isinstance(keyb, Cascade)
    assert keyb.tokens == 480
    nested = scorer_of("cascade:bm25>cascade:bm25>bm25@5@50")
    assert isinstance(nested, Cascade)
    assert (nested.best, nested.scorers[1].best) == (50, 5)  # type: ignore[attr-defined]
    for wrong in (
        "cascade",
        "cascade:bm25",
        "cascade:bm25>",
        "cascade:bm25>bm26@5",
        "cascade:>bm25",
    ):
        with pytest.raises(ValueError, match=r"got the retriever|does not exist"):
            check_name(wrong)


def test_errors() -> None:
    with pytest.raises(
        ValueError,
        match="first stage cuts 'sentence' and the second 'chunk'; expected the same",
    ):
        Cascade(BM25(), BM25("chunk"))
    Cascade(BM25(), BM25("chunk"), unit="sentence")
    with pytest.raises(ValueError, match="cuts 'sentence' and the second 'chunk:50'"):
        Cascade(BM25(), Cascade(BM25(segmenter_of("chunk:50")), BM25("chunk:50")))
    with pytest.raises(ValueError, match="best is 0"):
        Cascade(BM25(), BM25(), best=0)
    with pytest.raises(ValueError, match="tokens is 0"):
        Cascade(BM25(), BM25(), tokens=0)
    with pytest.raises(TypeError, match="scorer is str; expected a scorer: subclass"):
        Cascade(BM25(), "crossencoder")  # type: ignore[arg-type]
    with pytest.raises(ScanCancelled):
        score_batch(
            Cascade(BM25(), BM25()), [("q", TEXT, UNITS)], cancelled=lambda: True
        )
    assert pickle.loads(pickle.dumps(Cascade(BM25(), BM25()))).best == 50


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
