"""How a question and a text are laid out for the model, and what is left out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.query_on_text import QueryOnText
from spscanner_rag.text.units import Unit


def counted(unit_ends: list[int]) -> IndexedText:
    """A document with tokens 100, 101, ..., of one character each.

    The strings of its units do not matter.
    """
    places = np.arange(unit_ends[-1] + 1, dtype=np.int32)
    units = [Unit(0, 1, "")] * len(unit_ends)
    return IndexedText(
        units, places + 100, places, places + 1, np.array(unit_ends, np.int64)
    )


def sequence_token_by_token(
    question: list[int], unit_ends: list[int], first: int, last: int, every: int | None
) -> tuple[list[int], list[int]]:
    """Stream and unit ends of a document with tokens 100, 101, ..., the slow way."""
    begin = 0 if first == 0 else min(unit_ends[first - 1] + 1, unit_ends[first])
    ends, sequence, place, since = unit_ends[first : last + 1], [*question], {}, 0
    for token in range(begin, ends[-1] + 1):
        if every is not None and since >= every and token - 1 in ends:
            sequence, since = [*sequence, *question], 0
        place[token] = len(sequence)
        sequence.append(100 + token)
        since += 1
    return sequence, [place[end] for end in ends]


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    question=st.integers(0, 4),
    every=st.none() | st.integers(1, 20),
    part=st.tuples(st.integers(0, 29), st.integers(0, 29)),
)
def test_sequences_are_those_of_the_slow_way(
    lengths: list[int], question: int, every: int | None, part: tuple[int, int]
) -> None:
    document = counted(np.cumsum(lengths).tolist())
    first, last = sorted(place % len(lengths) for place in part)
    question_ids = np.arange(question, dtype=np.int32)
    classes = (np.arange(len(document.input_ids)) % 6).astype(np.uint8)
    sequence = QueryOnText(document, question_ids, every, classes).sequence(first, last)
    expected = sequence_token_by_token(
        question_ids.tolist(), document.unit_ends.tolist(), first, last, every
    )
    assert (sequence.input_ids.tolist(), sequence.positions.tolist()) == expected
    assert (sequence.input_ids.dtype, sequence.positions.dtype) == (np.int32, np.int64)
    assert sequence.match_classes is not None
    assert sequence.match_classes.tolist() == [
        (token - 100) % 6 if token >= 100 else 6 for token in expected[0]
    ]
