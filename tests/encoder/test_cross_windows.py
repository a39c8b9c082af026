"""Windows of whole sentences around the likeliest ones."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder.cross_windows import (
    SentenceRange,
    SentenceTokens,
    windows_around,
)


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
    st.integers(1, 8),
)
def test_windows_hold_whole_sentences_around_it(
    lengths: list[int], random: Random, most: int
) -> None:
    order = list(range(len(lengths)))
    random.shuffle(order)
    sentences = SentenceTokens(len(lengths), lambda number: [7] * lengths[number], 40)
    windows = windows_around(order, sentences, most)
    assert 1 <= len(windows) <= most
    assert windows[0].first <= order[0] < windows[0].stop
    for window in windows:
        assert 0 <= window.first < window.stop <= len(lengths)
        assert sentences.count_in(window) <= 40
    if len(windows) < most:  # then each sentence is in a window
        assert all(
            any(first <= number < stop for first, stop in windows) for number in order
        )


def test_the_ends_of_a_text_are_no_edges() -> None:
    assert SentenceRange(0, 3).depth(0, 9) == 2
    assert SentenceRange(0, 3).depth(2, 9) == 0
    assert SentenceRange(6, 9).depth(8, 9) == 2
    assert SentenceRange(0, 9).depth(4, 9) == 9
