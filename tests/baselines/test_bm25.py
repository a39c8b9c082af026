import math
import re

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.baselines import BM25
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.text.units import Unit
from tests.fakes import logits_of

WORDS = ("otter", "heron", "lynx", "marten", "stoat")


def units_of(sentences: list[str]) -> tuple[str, list[Unit]]:
    units, start = [], 0
    for sentence in sentences:
        units.append(Unit(start, start + len(sentence), sentence + "\n"))
        start += len(sentence) + 1
    return "\n".join(sentences), units


def bm25_by_hand(
    query: list[str], sentences: list[list[str]], k1: float, b: float
) -> list[float]:
    """Robertson's formula with Lucene's idf, written out."""
    mean = sum(map(len, sentences)) / len(sentences)
    scores = []
    for words in sentences:
        score = 0.0
        for word in query:
            having = sum(word in other for other in sentences)
            idf = math.log(1 + (len(sentences) - having + 0.5) / (having + 0.5))
            times = words.count(word)
            score += idf * times / (times + k1 * (1 - b + b * len(words) / mean))
        scores.append(score)
    return scores


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=6
    ),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
)
def test_is_bm25_and_tf_idf_with_a_large_k1(
    sentences: list[list[str]], query: list[str]
) -> None:
    text, units = units_of([" ".join(words) for words in sentences])
    for k1, b in ((1.2, 0.6), (10**6, 0)):
        got = BM25(k1=k1, b=b).raw_scores(" ".join(query), text, units)
        np.testing.assert_allclose(
            got, bm25_by_hand(query, sentences, k1, b), rtol=1e-4, atol=1e-6 / k1
        )


def test_stems_and_stop_words() -> None:
    text, units = units_of(["The otters were swimming.", "The of and which?"])
    swim, the = (
        BM25().raw_scores(query, text, units)
        for query in ("Which otter swims", "the of which")
    )
    assert swim[0] > 0
    shown = 1 / (1 + np.exp(-BM25().logits(swim).astype(np.float64)))
    np.testing.assert_allclose(shown, swim / (1 + swim), atol=1e-6)
    assert swim[1] == 0
    assert not the.any()


def test_words_are_kept_for_the_next_question_of_a_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [
        units_of(["An otter swims.", "A heron."]),
        units_of(["It rained.", "Otters, otters."]),
    ]
    index = CollectionIndex.of(
        [unit.model_text for unit in units] for _, units in texts
    )
    asked = [
        [(query, text, units) for text, units in texts]
        for query in ("otter", "heron", "otter")
    ]
    expected = [
        logits_of(BM25().score_units_many(requests, collection=index))
        for requests in asked
    ]
    cut: list[str] = []
    tokenize = bm25s.tokenize
    spy = lambda given, **options: cut.extend(given) or tokenize(given, **options)  # noqa: E731
    monkeypatch.setattr(bm25s, "tokenize", spy)
    bm25 = BM25(keep_texts=2)
    found = [
        logits_of(bm25.score_units_many(requests, collection=index))
        for requests in asked
    ]
    np.testing.assert_array_equal(
        np.concatenate(found, axis=None), np.concatenate(expected, axis=None)
    )
    assert cut.count("It rained.") == cut.count("A heron.") == 1


@pytest.mark.parametrize("sentences", [["the", "of and"], ["...", "\ud800"]])
def test_text_without_words(sentences: list[str]) -> None:
    text, units = units_of(sentences)
    assert BM25().score_units("otter", text, units).shape == (2,)
    assert BM25().score_units("otter", text, []).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k1": 0}, "k1 above 0"),
        ({"b": 2}, "b from 0 to 1"),
        ({"language": "klingon"}, "expected one of"),
        ({"keep_texts": 0}, "at least 1"),
    ],
)
def test_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        BM25(**arguments)  # type: ignore[arg-type]


SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), max_size=5
)


@given(st.lists(SENTENCES, max_size=5))
@settings(deadline=None)
def test_a_collection_is_scored_as_one_text(parts: list[list[str]]) -> None:
    query, scorer = "otter and the heron", BM25()
    texts = [units_of(part) for part in parts]
    index = CollectionIndex.of(
        [unit.model_text for unit in units] for _, units in texts
    )
    among = scorer.score_units_many(
        [(query, text, units) for text, units in texts], collection=index
    )
    whole, units = units_of([sentence for part in parts for sentence in part])
    np.testing.assert_allclose(
        np.concatenate([np.zeros(0), *logits_of(among)]),
        scorer.score_units(query, whole, units),
        rtol=1e-4,
    )


def test_a_collection_that_grows_is_counted_again() -> None:
    scorer, index = BM25(), CollectionIndex.of([["an otter "], ["a heron "]])
    text, units = units_of(["an otter"])
    before = scorer.score_units_many([("otter", text, units)], collection=index)
    index.add("more", ["a lynx "] * 8)
    after = scorer.score_units_many([("otter", text, units)], collection=index)
    assert after[0].logits > before[0].logits


def test_tf_idf_is_bm25_without_saturation() -> None:
    """A word's share of the unit, times its weight, orders units as TF-IDF does."""
    parts = [
        "otter heron",
        "otter otter fox lynx",
        "otter fox",
        "lynx lynx lynx",
        "heron fox lynx",
    ]
    text, units = units_of(parts)
    scores = BM25(k1=10**6, b=1).raw_scores("otter heron", text, units)
    rarities = {}
    for word in ("otter", "heron"):
        having = sum(word in part.split() for part in parts)
        rarities[word] = math.log(1 + (len(parts) - having + 0.5) / (having + 0.5))
    expected = []
    for part in parts:
        words = part.split()
        shares = (words.count(word) / len(words) * rarities[word] for word in rarities)
        expected.append(sum(shares))
    ratios = scores[[0, 1, 2, 4]] / np.array(expected)[[0, 1, 2, 4]]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
    assert scores[3] == 0


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("ใครสร้างโรงเรียน", ["เรือออกตอนเที่ยง ", "หลานสาวสร้างโรงเรียนให้เด็ก ๆ"]),
        (
            "Ai xây trường học?",
            ["Tàu rời bến lúc trưa. ", "Cô gái xây trường học."],
        ),
        ("מי בנה את בית הספר?", ["הספינה יצאה בצהריים. ", "הנכדה בנתה את בית הספר."]),
        (
            "Хто збудував школу?",
            ["Корабель відплив. ", "Онука збудувала школу."],
        ),
        ("누가 학교를 지었나?", ["배는 정오에 떠났다. ", "손녀가 학교를 지었다."]),
        ("स्कूल किसने बनाया?", ["जहाज़ दोपहर को चला। ", "पोती ने स्कूल बनाया।"]),
    ],
)
def test_languages_without_a_stemmer_or_with_marks(
    query: str, sentences: list[str]
) -> None:
    text = "".join(sentences)
    cut = len(sentences[0])
    units = [Unit(0, cut, sentences[0]), Unit(cut, len(text), sentences[1])]
    first, second = BM25().raw_scores(query, text, units)
    assert second > first == 0
