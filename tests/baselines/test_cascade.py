"""Cascades: the second stage reads the best units, which stay above the rest."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.baselines import BM25, Cascade
from spscanner_rag.baselines.cascade import UNREAD_LOGIT
from spscanner_rag.baselines.names import check_name, scorer_of
from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.register import LoadOptions
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.scorers import Cancelled, ScanCancelled, score_batch, words_together
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
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
