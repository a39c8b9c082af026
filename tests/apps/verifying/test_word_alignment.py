import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.verifying.word_alignment import Change, align

WORDS = st.lists(st.integers(0, 3), min_size=1, max_size=8)


def slow_distance(quote: list[int], text: list[int]) -> int:
    """The least Levenshtein distance to any stretch of the text, by its definition."""

    def between(one: list[int], other: list[int]) -> int:
        row = list(range(len(other) + 1))
        for word in one:
            above = row
            row = [above[0] + 1]
            for at, theirs in enumerate(other):
                row.append(
                    min(above[at + 1] + 1, row[at] + 1, above[at] + (word != theirs))
                )
        return row[-1]

    n = len(text)
    stretches = [
        text[first:stop] for first in range(n + 1) for stop in range(first, n + 1)
    ]
    return min(between(quote, stretch) for stretch in stretches)


@given(WORDS, WORDS)
def test_the_distance_is_the_least(quote: list[int], text: list[int]) -> None:
    found = align(np.array(quote), np.array(text))
    assert found.distance == slow_distance(quote, text)
    kept_of_quote = list(quote)
    kept_of_text = dict(enumerate(text))
    for change in reversed(found.changes):
        del kept_of_quote[change.quote_start : change.quote_end]
        for place in range(change.text_start, change.text_end):
            del kept_of_text[place]
    rest = [
        word for place, word in kept_of_text.items() if found.start <= place < found.end
    ]
    assert kept_of_quote == rest


@pytest.mark.parametrize(
    ("quote", "changes"),
    [
        ([1, 2, 9], (Change(2, 3, 2, 3),)),
        ([9, 2, 3], (Change(0, 1, 0, 1),)),
        ([1, 2, 4], (Change(2, 2, 2, 3),)),
    ],
)
def test_words_at_the_ends_are_changed_not_added(
    quote: list[int], changes: tuple[Change, ...]
) -> None:
    assert align(np.array(quote), np.array([1, 2, 3, 4])).changes == changes
