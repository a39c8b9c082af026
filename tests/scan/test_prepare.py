"""How a checkpoint reads: what is cut, tokenized, matched and laid out, and what is left out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spscanner_rag.lexical.match import MatchOptions
from spscanner_rag.scan.prepare import REANCHOR_QUESTIONS, PreparedText, QueryOnText, Reading
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

TEXT = "The keeper wrote the date. He signed the treaty! Who signed it? Nobody answered. " * 4


def reading(
    tokenizer: Tokenizer,
    *,
    reanchor: int | None = None,
    match: bool = False,
    prior: bool = False,
    around: bool = False,
) -> Reading:
    options = MatchOptions(surroundings=around)
    return Reading(tokenizer, SentenceSegmenter(), "last_character", reanchor, match, prior, options)


def repeats(input_ids: np.ndarray, question: list[int]) -> list[int]:
    """Where the question stands in the ids."""
    width = len(question)
    return [at for at in range(len(input_ids) - width + 1) if input_ids[at : at + width].tolist() == question]


def test_long_question_is_repeated_less_often(tiny_tokenizer: Tokenizer) -> None:
    query = "Who of them signed the treaty that the captain had brought from the other island?"
    own = reading(tiny_tokenizer, reanchor=10)
    text = own.prepare(TEXT * 3)
    sequence = own.pair(query, text).sequence()
    question = tiny_tokenizer.encode(query + "\n").ids
    places = repeats(sequence.input_ids, question)
    assert len(places) > 1
    steps = np.diff(places) - len(question)
    assert steps.min() >= REANCHOR_QUESTIONS * len(question)
    assert len(sequence.input_ids) <= (1 + 1 / REANCHOR_QUESTIONS) * len(text.input_ids) + len(question)


# Which tokens stand where


def tokens_of(input_ids: np.ndarray, unit_ends: np.ndarray) -> PreparedText:
    """A text of given tokens, each of one character; its units' strings do not matter to the sequence."""
    places = np.arange(len(input_ids), dtype=np.int32)
    return PreparedText([Unit(0, 1, "")] * len(unit_ends), input_ids, places, places + 1, unit_ends)


def counted(unit_ends: list[int]) -> PreparedText:
    """A document whose tokens are 100, 101, ..."""
    places = np.arange(unit_ends[-1] + 1, dtype=np.int32)
    return tokens_of(places + 100, np.array(unit_ends, np.int64))


def sequence_token_by_token(
    question: list[int], unit_ends: list[int], first: int, last: int, every: int | None
) -> tuple[list[int], list[int]]:
    """Stream and unit ends of a document whose tokens are 100, 101, ..., the slow way."""
    begin = 0 if first == 0 else min(unit_ends[first - 1] + 1, unit_ends[first])
    ends, sequence, place, since = unit_ends[first : last + 1], [*question], {}, 0
    for token in range(begin, ends[-1] + 1):
        if every is not None and since >= every and token - 1 in ends:
            sequence, since = [*sequence, *question], 0
        place[token] = len(sequence)
        sequence.append(100 + token)
        since += 1
    return sequence, [place[end] for end in ends]


@settings(max_examples=300)
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
    expected = sequence_token_by_token(question_ids.tolist(), document.unit_ends.tolist(), first, last, every)
    assert (sequence.input_ids.tolist(), sequence.positions.tolist()) == expected
    assert (sequence.input_ids.dtype, sequence.positions.dtype) == (np.int32, np.int64)
    assert sequence.match_classes is not None
    assert sequence.match_classes.tolist() == [
        (token - 100) % 6 if token >= 100 else 6 for token in expected[0]
    ]
