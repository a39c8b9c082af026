"""How a checkpoint reads: what is cut, tokenized, matched and laid out, and what is left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spscanner_rag.lexical.match import MatchOptions
from spscanner_rag.scan.prepare import REANCHOR_QUESTIONS, PreparedText, QueryOnText, Reading
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

TEXT = "The keeper wrote the date. He signed the treaty! Who signed it? Nobody answered. " * 4
QUERY = "Who signed the treaty?"


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


def test_prepared_text(tiny_tokenizer: Tokenizer) -> None:
    text = reading(tiny_tokenizer).prepare(TEXT)
    assert [TEXT[unit.start : unit.end] for unit in text.units] == [
        TEXT[start:end] for start, end in zip(text.starts, text.ends, strict=True)
    ]
    assert text.starts.dtype == text.ends.dtype == np.int64
    assert text.input_ids.tolist() == tiny_tokenizer.encode(TEXT).ids


@pytest.mark.parametrize(("match", "prior"), [(False, False), (True, False), (False, True), (True, True)])
def test_words_are_read_when_the_model_wants_them(
    tiny_tokenizer: Tokenizer, match: bool, prior: bool
) -> None:
    own = reading(tiny_tokenizer, match=match, prior=prior)
    text = own.prepare(TEXT)
    asked = own.pair(QUERY, text)
    assert ("words" in vars(text)) == (match or prior)
    assert text.words.postings.n_units == len(text.units)
    assert (asked.match_classes is not None, asked.prior is not None) == (match, prior)
    sequence = asked.sequence()
    assert (sequence.match_classes is not None, sequence.prior is not None) == (match, prior)


def test_surroundings_stand_beside_the_prior(tiny_tokenizer: Tokenizer) -> None:
    own, around = (reading(tiny_tokenizer, prior=True, around=wanted) for wanted in (False, True))
    text = own.prepare(TEXT)
    prior, both = own.pair(QUERY, text).prior, around.pair(QUERY, text).prior
    assert prior is not None
    assert both is not None
    assert (prior.shape[1], both.shape[1]) == (1, 4)
    np.testing.assert_array_equal(both[:, :1], prior)
    assert np.ptp(both, axis=0).min() > 0.1
    sequence = around.pair(QUERY, text).sequence(2, 3)
    np.testing.assert_array_equal(sequence.prior, both[2:4])


def test_given_units_are_read_as_they_are(tiny_tokenizer: Tokenizer) -> None:
    units = [Unit(0, 3, "The "), Unit(4, 10, "Keeper")]
    text = reading(tiny_tokenizer).prepare("the keeper", units)
    assert text.units is units
    assert text.input_ids.tolist() == tiny_tokenizer.encode("The Keeper").ids


def test_no_units(tiny_tokenizer: Tokenizer) -> None:
    own = reading(tiny_tokenizer, reanchor=8, match=True, prior=True)
    for text in (own.prepare(" \n"), own.prepare(TEXT, [])):
        assert text.starts.shape == text.ends.shape == (0,)
        asked = own.pair(QUERY, text)
        assert asked.prior is not None
        assert asked.prior.shape == (0, 1)
        sequence = asked.sequence()
        assert sequence.positions.shape == (0,)
        assert sequence.input_ids.tolist() == tiny_tokenizer.encode(QUERY + "\n").ids
        assert sequence.match_classes is not None
        assert set(sequence.match_classes.tolist()) == {6}


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


def test_tokens_after_the_last_unit_are_left_out() -> None:
    places = np.arange(6, dtype=np.int32)
    document = tokens_of(places, np.array([1, 3]))
    assert QueryOnText(document, np.array([9], np.int32)).sequence().input_ids.tolist() == [9, 0, 1, 2, 3]


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
