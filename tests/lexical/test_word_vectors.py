"""Vectors of words, their similarities and their arrays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.lexical import word_vectors
from spscanner_rag.lexical.word_vectors import WordVectors
from tests.lexical.tables import similarities, table_of

WORDS = ("repair", "mend", "ship", "über", "船", "7")


def directions(
    *, words: int = len(WORDS), dimensions: int = 8, seed: int = 0
) -> NDArray[np.float32]:
    """Vectors that are close to each other, but differ."""
    random = np.random.default_rng(seed)
    common = random.normal(size=dimensions)
    return (random.normal(size=(words, dimensions)) + 2 * common).astype(np.float32)


@pytest.fixture(scope="module")
def table() -> WordVectors:
    return table_of(WORDS, directions())


def expected_similarity(table: WordVectors, question_word: str, word: str) -> float:
    """By the formula, one pair at a time, in float64."""
    if question_word not in table or word not in table:
        return 0.0
    first, second = (
        table.vectors[table.words.index(w)].astype(np.float64)
        * table.scales[table.words.index(w)]
        for w in (question_word, word)
    )
    return float(max(0.0, (min(first @ second, 1.0) - 0.4) / 0.6) ** 2)


ANY_WORDS = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text(max_size=4)), max_size=12
)


@settings(max_examples=100)
@given(question=ANY_WORDS, words=ANY_WORDS, at_once=st.integers(1, 5))
def test_similarities_are_those_of_the_formula(
    question: list[str], words: list[str], at_once: int
) -> None:
    table = table_of(WORDS, directions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_vectors, "_WORDS_AT_ONCE", at_once)
        got = similarities(table, question, words)
    assert (got.shape, got.dtype) == ((len(words), len(question)), np.float32)
    expected = [[expected_similarity(table, q, w) for q in question] for w in words]
    np.testing.assert_allclose(got, np.array(expected).reshape(got.shape), atol=1e-5)


def test_arrays_bring_the_table_back(table: WordVectors) -> None:
    named = WordVectors(table.words, table.vectors, table.scales, "a model (MIT)")
    again = WordVectors.from_arrays(named.to_arrays())
    assert (again.words, again.source, again.dimensions) == (WORDS, "a model (MIT)", 8)
    np.testing.assert_array_equal(again.vectors, table.vectors)
    np.testing.assert_array_equal(again.scales, table.scales)
    assert str(again) == "6 words of 8 dimensions, made with a model (MIT)"
    assert str(table) == "6 words of 8 dimensions"
    unnamed = {
        name: array for name, array in table.to_arrays().items() if name != "source"
    }
    assert WordVectors.from_arrays(unnamed).source == ""


def changed(name: str, to: Any) -> dict[str, NDArray[Any]]:
    arrays = table_of(WORDS, directions()).to_arrays()
    return arrays | {name: to(arrays[name])}


def text(words: str) -> NDArray[np.uint8]:
    return np.frombuffer(words.encode(), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            changed("vectors", lambda v: v.astype(np.float32)),
            r"vectors is float32 of shape \(6, 8\)",
        ),
        (
            changed("vectors", lambda v: np.tile(v, 20)),
            r"shape \(6, 160\); expected int8, .* 1 to 128",
        ),
        (changed("vectors", lambda v: v[:, 0]), r"vectors is int8 of shape \(6,\)"),
        (
            changed("vectors", lambda v: v[:, :4]),
            r"the vector of 'repair' has length 0\.\d+; expected 1",
        ),
        (
            changed("vectors", np.zeros_like),
            r"the vector of 'repair' has length 0\.0; expected 1",
        ),
        (
            changed("scales", lambda s: s * [1, 1, np.nan, 1, 1, 1]),
            r"'ship' has length nan",
        ),
        (
            changed("scales", lambda s: s.astype(np.int64)),
            r"scales is int64 of shape \(6,\)",
        ),
        (
            changed("words", lambda _: text("a\nb\nc")),
            r"3 words, 6 vectors and 6 scales",
        ),
        (changed("words", lambda _: text("a\nb\nc\na\ne\nf")), "empty or there twice"),
        (changed("words", lambda _: text("a\nb\n\nd\ne\nf")), "empty or there twice"),
        (
            changed("words", lambda w: w.astype(np.int64)),
            r"words is int64 of shape \(\d+,\); expected bytes",
        ),
        (
            changed("words", lambda _: np.array([0xFF], np.uint8)),
            r"words: 'utf-8' codec .*; expected UTF-8",
        ),
        (
            {"words": text("a")},
            r"arrays words; expected scales, source, vectors and words",
        ),
        (
            changed("words", lambda w: w) | {"more": text("a")},
            r"arrays more, scales, source, vectors, words",
        ),
    ],
)
def test_a_table_that_cannot_be_right_is_refused(
    arrays: dict[str, NDArray[Any]], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        WordVectors.from_arrays(arrays)
    assert "\n" not in str(caught.value)
