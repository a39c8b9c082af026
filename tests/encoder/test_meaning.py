"""How much cosines count beside the scanner's logit, which vectors are kept, and what the cross-reader reads."""

import os
import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.checkpoint.encoder_file import HEAD, EncoderFile, cross_tensors
from spscanner_rag.encoder import meaning as meaning_module
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.meaning import (
    CrossReader,
    Meaning,
    MeaningWeights,
    Range,
    Sentences,
    laid_around,
    one_answers,
    unrelated_cosines,
)
from spscanner_rag.encoder.sentences import TokenEncoder, digest_of, ignore

SENTENCES = ["the keeper wrote the date . ", "he signed the treaty . ", "it rained ! "]
WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


class Counting:
    """An encoder that counts how often it reads."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder, self.digest, self.reads = encoder, encoder.digest, 0
        self.question = encoder.question

    def vectors(self, *arguments: Any) -> Any:
        """Read, and count."""
        self.reads += 1
        return self.encoder.vectors(*arguments)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12))
def test_logits_are_the_formula(values: list[float]) -> None:
    cosines = np.array(values, np.float32)
    scanner = np.linspace(-4, 4, len(values), dtype=np.float32)
    expected = []
    for i, cosine in enumerate(values):
        near = np.mean(values[max(0, i - 1) : i + 2]) - cosine
        wide = np.mean(values[max(0, i - 4) : i + 5]) - cosine
        expected.append(-3 + 0.5 * scanner[i] + 10 * cosine + 2 * near + wide)
    np.testing.assert_allclose(WEIGHTS.logits(scanner, cosines), expected, atol=1e-4)


def test_a_text_is_read_once(encoder: TokenEncoder) -> None:
    counting = Counting(encoder)
    meaning = Meaning(counting, WEIGHTS)
    totals, steps = list[int](), list[int]()
    threads = [
        threading.Thread(
            target=meaning.vectors, args=(SENTENCES, totals.append, steps.append)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counting.reads == 1
    assert sum(totals) == sum(steps) > 0
    assert meaning.has(SENTENCES)


def test_a_long_text_does_not_hold_up_a_short_one(encoder: TokenEncoder) -> None:
    meaning, begun, goes_on = (
        Meaning(encoder, WEIGHTS),
        threading.Event(),
        threading.Event(),
    )

    def wait(tokens: int) -> None:
        begun.set()
        assert goes_on.wait(30)

    long = threading.Thread(target=meaning.vectors, args=(SENTENCES * 3, wait))
    long.start()
    assert begun.wait(30)
    assert len(meaning.vectors(SENTENCES).rows) == 3
    goes_on.set()
    long.join()
    assert meaning.has(SENTENCES * 3)


def test_a_forked_child_waits_for_no_lock_of_its_parent(encoder: TokenEncoder) -> None:
    meaning = Meaning(encoder, WEIGHTS)
    with meaning_module._alone(digest_of(SENTENCES), ignore), meaning_module._lock:
        child = os.fork()
        if not child:
            meaning.vectors(SENTENCES)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_vectors_are_bounded_in_bytes(
    encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.encoder.meaning.MOST_BYTES", 100)
    meaning = Meaning(encoder, WEIGHTS)
    for sentence in SENTENCES:
        meaning.vectors([sentence] * 3)
    assert [meaning.has([sentence] * 3) for sentence in SENTENCES] == [
        False,
        False,
        True,
    ]


def test_a_pickle_keeps_no_vectors(encoder: TokenEncoder) -> None:
    meaning = Meaning(encoder, WEIGHTS, own=False)
    meaning.vectors(SENTENCES)
    copy = pickle.loads(pickle.dumps(Meaning(PlainEncoder(), WEIGHTS, own=False)))
    assert (copy.weights, copy.own, copy.has(SENTENCES)) == (WEIGHTS, False, False)


def test_another_encoder_is_scaled_to_the_one_that_was_weighed(
    encoder: TokenEncoder,
) -> None:
    mean, deviation = unrelated_cosines(encoder)
    own = Meaning(encoder, WEIGHTS)
    vectors = own.vectors(SENTENCES)
    cosines = own.cosines("who signed the treaty ?", vectors)
    same = Meaning(encoder, replace(WEIGHTS, mean=mean, deviation=deviation), own=False)
    np.testing.assert_allclose(
        same.cosines("who signed the treaty ?", vectors), cosines, atol=1e-5
    )
    wider = Meaning(
        encoder, replace(WEIGHTS, mean=0.0, deviation=2 * deviation), own=False
    )
    found = wider.cosines("who signed the treaty ?", vectors)
    np.testing.assert_allclose(found, 2 * (cosines - mean), atol=1e-5)


def test_vectors_of_another_width_are_refused(encoder: TokenEncoder) -> None:
    vectors = Meaning(encoder, WEIGHTS).vectors(SENTENCES)
    with pytest.raises(ValueError, match="one kind"):
        Meaning(PlainEncoder(), WEIGHTS).cosines("who?", vectors)


class PlainEncoder:
    """An encoder that can be pickled; its question vectors have three numbers."""

    digest = "plain"

    def question(self, query: str) -> np.ndarray:
        """The same vector for any question."""
        return np.ones(3, np.float32)

    def vectors(self, *arguments: Any) -> Any:
        """Not used."""
        raise NotImplementedError


def test_a_text_answers_by_its_best_cosine_and_by_what_was_read() -> None:
    weights = MeaningWeights(answer_scale=0.5, answer_bias=1)

    def answerable(
        cosines: Sequence[float], read: Sequence[float] | None = None
    ) -> float:
        again = None if read is None else np.array(read, np.float32)
        said = weights.answerable(one_answers(np.array(cosines, np.float32), again))
        assert said is not None
        return said

    assert answerable([0.5, -0.9]) == pytest.approx(
        1 / (1 + np.exp(-(0.5 * 3 * 0.5 + 1)))
    )
    nothing = answerable([0.5, 0.1], [-np.inf, -np.inf])
    rising = [answerable([0.5, 0.1], [value, -np.inf]) for value in (-7, -2, 1, 9)]
    assert (
        nothing
        == rising[0]
        < rising[1]
        < rising[2]
        < rising[3]
        < answerable([0.5, 0.1]) + 1e-9
    )
    assert answerable([0.5] * 3, [-2] * 3) > answerable(
        [0.5] * 3, [-2, -9, -9]
    )  # one of three is enough
    assert answerable([]) == answerable([], []) == 0.0  # an empty text answers nothing
    assert WEIGHTS.answerable(1.0) is None


WORDS = "the keeper wrote date he signed treaty it rained well was dry".split()


@pytest.fixture(scope="module")
def reader(encoder_file: EncoderFile) -> CrossReader:
    """A cross-reader with random weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = cross_tensors(encoder_file.shape)
    cross = {
        name: torch.randn(shape, generator=generator) for name, shape in shapes.items()
    }
    cross[HEAD][-2:] = torch.tensor([1.0, -2.0])
    found = encoder_file._replace(cross=cross).loaded_cross("cpu", torch.float32)
    assert found is not None
    return found


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
    sentences = Sentences(len(lengths), lambda number: [7] * lengths[number], 40)
    windows = laid_around(order, sentences, most)
    assert 1 <= len(windows) <= most
    assert windows[0].first <= order[0] < windows[0].stop
    for window in windows:
        assert 0 <= window.first < window.stop <= len(lengths)
        assert sentences.tokens(window) <= 40
    if len(windows) < most:  # then each sentence is in a window
        assert all(
            any(first <= number < stop for first, stop in windows) for number in order
        )


def test_the_ends_of_a_text_are_no_edges() -> None:
    assert Range(0, 3).depth(0, 9) == 2
    assert Range(0, 3).depth(2, 9) == 0
    assert Range(6, 9).depth(8, 9) == 2
    assert Range(0, 9).depth(4, 9) == 9


def test_states_of_two_texts_are_those_of_transformers(
    bert_folder: Path, reader: CrossReader
) -> None:
    original = transformers.BertModel.from_pretrained(bert_folder).eval()
    weights = {
        name: original.state_dict()[name] for name in reader.model.shape.tensors()
    }
    model = Bert(reader.model.shape, weights)
    row, begin = [2, 5, 9, 3, 6, 7, 3], 4
    with torch.inference_mode():
        kinds = torch.tensor([[0] * begin + [1] * (len(row) - begin)])
        expected = original(
            torch.tensor([row]), token_type_ids=kinds
        ).last_hidden_state[0]
    torch.testing.assert_close(
        model.states([row], [begin]), expected, atol=1e-5, rtol=0
    )


def test_a_sentence_is_read_with_its_neighbours_and_the_question(
    reader: CrossReader,
) -> None:
    sentences = [f"{WORDS[i % 12]} {WORDS[(5 * i) % 12]}." for i in range(12)]
    scores = np.zeros(12, np.float32)
    first = reader.logits("who signed the treaty?", sentences, scores)
    assert np.isfinite(first).all()
    assert not np.allclose(first, reader.logits("was it dry?", sentences, scores))
    changed = [*sentences[:1], "rained rained.", *sentences[2:]]
    again = reader.logits("who signed the treaty?", changed, scores)
    assert first[0] != again[0]
    assert np.array_equal(
        first, reader.logits("who signed the treaty?", sentences, scores)
    )


def test_what_is_not_read_counts_as_hopeless(
    reader: CrossReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.encoder.meaning.LIKELY", 2)
    sentences = [
        f"{WORDS[i % 12]} {WORDS[(7 * i) % 12]} {WORDS[(5 * i) % 12]}."
        for i in range(80)
    ]
    scores = np.zeros(80, np.float32)
    scores[[10, 60]] = 1
    expected, steps = list[int](), list[int]()
    logits = reader.logits(
        "who signed?", sentences, scores, expected.append, steps.append
    )
    read = np.flatnonzero(np.isfinite(logits))
    assert 1 < len(read) < 20
    assert all(min(abs(number - 10), abs(number - 60)) < 10 for number in read)
    assert sum(expected) == sum(steps) > 0


@pytest.mark.parametrize(
    "sentence", ["", "\u200b", "well " * 10_000, "\ud800", "汉字" * 500]
)
def test_any_sentence_gets_a_number(reader: CrossReader, sentence: str) -> None:
    logits = reader.logits(
        "was it dry? " * 500, [sentence, "it rained."], np.zeros(2, np.float32)
    )
    assert np.isfinite(logits).all()
