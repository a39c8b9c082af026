"""How a checkpoint reads: what is cut, tokenized, matched and laid out, and what is left out."""

import itertools

import numpy as np
import pytest
from tokenizers import Tokenizer

from spscanner_rag.scan.prepare import REANCHOR_QUESTIONS, Reading
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
    return Reading(tokenizer, SentenceSegmenter(), "last_character", reanchor, match, prior, around)


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
    assert text.tokens.input_ids.tolist() == tiny_tokenizer.encode(TEXT).ids
    assert text.words is None


@pytest.mark.parametrize(("match", "prior"), [(True, False), (False, True), (True, True)])
def test_words_are_read_when_the_model_wants_them(
    tiny_tokenizer: Tokenizer, match: bool, prior: bool
) -> None:
    own = reading(tiny_tokenizer, match=match, prior=prior)
    text = own.prepare(TEXT)
    assert text.words is not None
    assert text.words.n_units == len(text.units)
    laid = own.lay(QUERY, text)
    assert (laid.token_classes is not None, laid.prior is not None) == (match, prior)
    sequence = own.sequence(laid, text)
    assert (sequence.match_classes is not None, sequence.prior is not None) == (match, prior)


def test_surroundings_stand_beside_the_prior(tiny_tokenizer: Tokenizer) -> None:
    own, around = (reading(tiny_tokenizer, prior=True, around=wanted) for wanted in (False, True))
    text = own.prepare(TEXT)
    prior, both = own.lay(QUERY, text).prior, around.lay(QUERY, text).prior
    assert prior is not None
    assert both is not None
    assert (prior.shape[1], both.shape[1]) == (1, 4)
    np.testing.assert_array_equal(both[:, :1], prior)
    assert np.ptp(both, axis=0).min() > 0.1
    sequence = around.sequence(around.lay(QUERY, text), text, 2, 3)
    np.testing.assert_array_equal(sequence.prior, both[2:4])


def test_given_units_are_read_as_they_are(tiny_tokenizer: Tokenizer) -> None:
    units = [Unit(0, 3, "The "), Unit(4, 10, "Keeper")]
    text = reading(tiny_tokenizer).prepare("the keeper", units)
    assert text.units is units
    assert text.tokens.input_ids.tolist() == tiny_tokenizer.encode("The Keeper").ids


def test_no_units(tiny_tokenizer: Tokenizer) -> None:
    own = reading(tiny_tokenizer, reanchor=8, match=True, prior=True)
    for text in (own.prepare(" \n"), own.prepare(TEXT, [])):
        assert text.starts.shape == text.ends.shape == (0,)
        laid = own.lay(QUERY, text)
        assert laid.prior is not None
        assert laid.prior.shape == (0, 1)
        sequence = own.sequence(laid, text)
        assert sequence.positions.shape == (0,)
        assert sequence.input_ids.tolist() == tiny_tokenizer.encode(QUERY + "\n").ids


def test_sequence_without_repeats(tiny_tokenizer: Tokenizer) -> None:
    own = reading(tiny_tokenizer)
    text = own.prepare(TEXT)
    sequence = own.sequence(own.lay(QUERY, text), text)
    question = tiny_tokenizer.encode(QUERY + "\n").ids
    stop = int(text.tokens.unit_ends[-1]) + 1
    assert sequence.input_ids.tolist() == question + text.tokens.input_ids[:stop].tolist()
    assert sequence.positions.tolist() == (text.tokens.unit_ends + len(question)).tolist()
    assert sequence.match_classes is None
    assert sequence.prior is None


def test_question_is_repeated_at_sentence_starts(tiny_tokenizer: Tokenizer) -> None:
    query = "it"  # so short that the checkpoint's number counts
    own = reading(tiny_tokenizer, reanchor=40, match=True)
    text = own.prepare(TEXT)
    sequence = own.sequence(own.lay(query, text), text)
    question = tiny_tokenizer.encode(query + "\n").ids
    assert REANCHOR_QUESTIONS * len(question) < 40
    places = repeats(sequence.input_ids, question)
    assert len(places) > 2
    assert places[0] == 0
    for before, place in itertools.pairwise(places):
        assert place - 1 in sequence.positions  # right after a unit's end
        assert place - before - len(question) >= 40
        # and at the first such place
        ends = [end for end in sequence.positions if before < end < place - 1]
        assert all(end + 1 - before - len(question) < 40 for end in ends)
    assert sequence.match_classes is not None
    asked = np.flatnonzero(sequence.match_classes == 6)
    assert asked.tolist() == [place + i for place in places for i in range(len(question))]


def test_long_question_is_repeated_less_often(tiny_tokenizer: Tokenizer) -> None:
    query = "Who of them signed the treaty that the captain had brought from the other island?"
    own = reading(tiny_tokenizer, reanchor=10)
    text = own.prepare(TEXT * 3)
    sequence = own.sequence(own.lay(query, text), text)
    question = tiny_tokenizer.encode(query + "\n").ids
    places = repeats(sequence.input_ids, question)
    assert len(places) > 1
    steps = np.diff(places) - len(question)
    assert steps.min() >= REANCHOR_QUESTIONS * len(question)
    assert len(sequence.input_ids) <= (1 + 1 / REANCHOR_QUESTIONS) * len(text.tokens.input_ids) + len(
        question
    )


def test_some_units_only(tiny_tokenizer: Tokenizer) -> None:
    own = reading(tiny_tokenizer, match=True, prior=True)
    text = own.prepare(TEXT)
    laid = own.lay(QUERY, text)
    assert laid.prior is not None
    assert laid.token_classes is not None
    sequence = own.sequence(laid, text, 3, 5)
    question = tiny_tokenizer.encode(QUERY + "\n").ids
    begin, stop = int(text.tokens.unit_ends[2]) + 1, int(text.tokens.unit_ends[5]) + 1
    assert sequence.input_ids.tolist() == question + text.tokens.input_ids[begin:stop].tolist()
    assert sequence.prior is not None
    assert sequence.prior.tolist() == laid.prior[3:6].tolist()
    assert sequence.match_classes is not None
    assert sequence.match_classes[len(question) :].tolist() == laid.token_classes[begin:stop].tolist()
    assert len(sequence.positions) == 3


def test_prior_and_classes_belong_to_their_units(tiny_tokenizer: Tokenizer) -> None:
    own = reading(tiny_tokenizer, match=True, prior=True)
    text = own.prepare("It rained. The treaty was signed. Nobody came.")
    laid = own.lay(QUERY, text)
    assert laid.prior is not None
    assert laid.token_classes is not None
    assert laid.prior[:, 0].argmax() == 1
    first, second = (int(end) for end in text.tokens.unit_ends[:2])
    matched = np.flatnonzero(laid.token_classes)
    assert len(matched)
    assert first < matched.min() <= matched.max() <= second


def test_end_rules(tiny_tokenizer: Tokenizer) -> None:
    units = [Unit(0, 2, "ab\n\n"), Unit(4, 6, "cd")]
    last_character = Reading(tiny_tokenizer, SentenceSegmenter(), "last_character").prepare("", units).tokens
    contained = Reading(tiny_tokenizer, SentenceSegmenter(), "contained").prepare("", units).tokens
    assert last_character.input_ids.tolist() == contained.input_ids.tolist()
    assert last_character.ends[last_character.unit_ends[0]] == 2  # "b"
    assert contained.ends[contained.unit_ends[0]] == 4  # the line ends
