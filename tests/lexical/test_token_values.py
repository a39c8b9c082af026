"""Values of words are made once, and looked up for the tokens that are read."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.token_values import TokenValues, of_tokens
from spscanner_rag.lexical.words import index_words

TEXT = "The keeper signed it. The ship left, and nobody saw the keeper again."


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_slice_has_the_values_of_all_tokens(first: int, stop: int) -> None:
    words = index_words([TEXT])
    starts = np.arange(0, len(TEXT), 3)
    ends = np.minimum(starts + 3, len(TEXT))
    values = np.arange(len(words.vocabulary) + 1)
    token_values = TokenValues(lambda: values, words, starts, ends)
    expected = of_tokens(values, words, starts, ends)[first:stop]
    assert token_values[first:stop].tolist() == expected.tolist()
    assert len(token_values) == len(starts)


def test_values_are_made_once_and_only_if_needed() -> None:
    words = index_words([TEXT])
    calls = []

    def make_values() -> np.ndarray:
        calls.append("made")
        return np.zeros(len(words.vocabulary) + 1)

    positions = np.arange(4)
    token_values = TokenValues(make_values, words, positions, positions + 1)
    assert calls == []
    token_values[:2]
    token_values[2:]
    assert calls == ["made"]
