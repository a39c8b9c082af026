"""Windows of whole sentences over the tokens of a text."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder.token_windows import TokenizedSentences


@given(st.lists(st.integers(0, 70), max_size=60), st.integers(5, 40))
def test_windows_hold_every_token_and_whole_sentences(
    lengths: list[int], most: int
) -> None:
    tokens = TokenizedSentences.of(
        [[number] * length for number, length in enumerate(lengths)]
    )
    windows = tokens.windows(most)
    total = sum(lengths)
    assert {place for start, stop in windows for place in range(start, stop)} == set(
        range(total)
    )
    assert all(0 < stop - start <= most for start, stop in windows)
    assert all(
        later[0] > earlier[0] and later[1] > earlier[1]
        for earlier, later in pairwise(windows)
    )
    boundaries = {0, *tokens.ends.tolist()}
    cut = {place for window in windows for place in window if place not in boundaries}
    # only a sentence that is longer than a window is cut
    assert all(lengths[int(tokens.ids[place])] > most for place in cut)
