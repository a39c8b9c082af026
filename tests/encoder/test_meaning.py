"""What cosines count beside the scanner's logits, and the vectors that are kept."""

import os
import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder import meaning as meaning_module
from spscanner_rag.encoder.meaning import Meaning, MeaningWeights, one_answers, unrelated_cosines
from spscanner_rag.encoder.sentences import TokenEncoder, digest_of, ignore

SENTENCES = ["the keeper wrote the date . ", "he signed the treaty . ", "it rained ! "]
WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


class Counting:
    """An encoder that counts its readings."""

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
        threading.Thread(target=meaning.vectors, args=(SENTENCES, totals.append, steps.append))
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
    meaning, begun, goes_on = Meaning(encoder, WEIGHTS), threading.Event(), threading.Event()

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


def test_vectors_are_bounded_in_bytes(encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spscanner_rag.encoder.meaning.MOST_BYTES", 100)
    meaning = Meaning(encoder, WEIGHTS)
    for sentence in SENTENCES:
        meaning.vectors([sentence] * 3)
    assert [meaning.has([sentence] * 3) for sentence in SENTENCES] == [False, False, True]


def test_a_pickle_keeps_no_vectors(encoder: TokenEncoder) -> None:
    meaning = Meaning(encoder, WEIGHTS, own=False)
    meaning.vectors(SENTENCES)
    copy = pickle.loads(pickle.dumps(Meaning(PlainEncoder(), WEIGHTS, own=False)))
    assert (copy.weights, copy.own, copy.has(SENTENCES)) == (WEIGHTS, False, False)


def test_another_encoder_is_scaled_to_the_one_that_was_weighed(encoder: TokenEncoder) -> None:
    mean, deviation = unrelated_cosines(encoder)
    own = Meaning(encoder, WEIGHTS)
    vectors = own.vectors(SENTENCES)
    cosines = own.cosines("who signed the treaty ?", vectors)
    same = Meaning(encoder, replace(WEIGHTS, mean=mean, deviation=deviation), own=False)
    np.testing.assert_allclose(same.cosines("who signed the treaty ?", vectors), cosines, atol=1e-5)
    wider = Meaning(encoder, replace(WEIGHTS, mean=0.0, deviation=2 * deviation), own=False)
    found = wider.cosines("who signed the treaty ?", vectors)
    np.testing.assert_allclose(found, 2 * (cosines - mean), atol=1e-5)


def test_vectors_of_another_width_are_refused(encoder: TokenEncoder) -> None:
    vectors = Meaning(encoder, WEIGHTS).vectors(SENTENCES)
    with pytest.raises(ValueError, match="one kind"):
        Meaning(PlainEncoder(), WEIGHTS).cosines("who?", vectors)


class PlainEncoder:
    """An encoder that can be pickled; its questions have three numbers."""

    digest = "plain"

    def question(self, query: str) -> np.ndarray:
        """The same for any."""
        return np.ones(3, np.float32)

    def vectors(self, *arguments: Any) -> Any:
        """Nothing."""
        raise NotImplementedError


def test_a_text_answers_by_its_best_cosine_and_by_what_was_read() -> None:
    weights = MeaningWeights(answer_scale=0.5, answer_bias=1)

    def answerable(cosines: Sequence[float], read: Sequence[float] | None = None) -> float:
        again = None if read is None else np.array(read, np.float32)
        said = weights.answerable(one_answers(np.array(cosines, np.float32), again))
        assert said is not None
        return said

    assert answerable([0.5, -0.9]) == pytest.approx(1 / (1 + np.exp(-(0.5 * 3 * 0.5 + 1))))
    nothing = answerable([0.5, 0.1], [-np.inf, -np.inf])
    rising = [answerable([0.5, 0.1], [value, -np.inf]) for value in (-7, -2, 1, 9)]
    assert nothing == rising[0] < rising[1] < rising[2] < rising[3] < answerable([0.5, 0.1]) + 1e-9
    assert answerable([0.5] * 3, [-2] * 3) > answerable([0.5] * 3, [-2, -9, -9])  # one of three that may does
    assert answerable([]) == answerable([], []) == 0.0  # an empty text answers nothing
    assert WEIGHTS.answerable(1.0) is None
