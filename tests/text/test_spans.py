"""Spans: what is cut, where, and that nothing is lost."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.text.spans import cut_long_span, trim_span

JOINED = [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "🇩🇪", "e\u0301", "ᄀ\u1161\u11a8",
    "👍🏽", "❤\ufe0f", "षि",
    "🏴\U000e0067\U000e0062\U000e007f",
]  # fmt: skip
any_text = st.one_of(
    st.text(st.characters(codec=None), max_size=80),
    st.lists(
        st.tuples(
            st.sampled_from([*"ab .\n;\u2028\ud800\u0301\u200d", *JOINED]),
            st.integers(1, 40),
        )
    ).map(lambda runs: "".join(part * count for part, count in runs)),
)


@settings(max_examples=200)
@given(any_text, st.integers(16, 60))
def test_long_spans_are_cut_without_loss(text: str, limit: int) -> None:
    whole = trim_span(text, 0, len(text))
    if whole is None:
        return
    spans = list(cut_long_span(text, *whole, limit))
    assert (spans[0][0], spans[-1][1]) == whole
    for start, end in spans:
        assert 0 < end - start <= limit
        assert text[start:end] == text[start:end].strip()
    for (_, end), (start, _) in pairwise(spans):
        assert end == start or text[end:start].isspace()
    if len(spans) == 1:
        assert whole[1] - whole[0] <= limit


def test_pieces_are_of_similar_length() -> None:
    lengths = [end - start for start, end in cut_long_span("x" * 1001, 0, 1001, 1000)]
    assert sorted(lengths) == [500, 501]
    assert list(cut_long_span("x" * 2000, 0, 2000, 1000)) == [(0, 1000), (1000, 2000)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("word; word\nword. word word word", "word; word"),
        ("some words; and some words. and some words", "some words;"),
        ("some words and other words and words", "some words and other"),
        ("x" * 30, "x" * 15),
    ],
)
def test_line_ends_then_clauses_then_words_then_anywhere(text: str, first: str) -> None:
    start, end = next(cut_long_span(text, 0, len(text), 20))
    assert text[start:end] == first


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("character", JOINED)
def test_written_characters_stay_whole(character: str, shift: int) -> None:
    text = "x" * shift + character * 40
    for start, _ in cut_long_span(text, shift, len(text), 24):
        assert (start - shift) % len(character) == 0
