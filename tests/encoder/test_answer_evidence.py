"""How much speaks for it that a text answers."""

from collections.abc import Sequence

import numpy as np
import pytest

from spscanner_rag.encoder.answer_evidence import answer_evidence, lead_of_others
from spscanner_rag.encoder.meaning_weights import MeaningWeights

WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


def test_a_text_answers_by_its_best_cosine_and_by_what_was_read() -> None:
    weights = MeaningWeights(answer_scale=0.5, answer_bias=1)

    def answerable(
        cosines: Sequence[float], read: Sequence[float] | None = None
    ) -> float:
        again = None if read is None else np.array(read, np.float32)
        said = weights.answerable(answer_evidence(np.array(cosines, np.float32), again))
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


BEN = np.array([False, True, False])


def test_what_others_say_better_speaks_against_an_answer() -> None:
    weights = MeaningWeights(answer_scale=0.5, answer_bias=1, answer_others=-2)
    lead = lead_of_others(np.float32([1, 3, 0]), BEN)
    assert lead == 2
    answered = weights.answerable(1.0)
    doubtful = weights.answerable(1.0, lead)
    assert answered == pytest.approx(1 / (1 + np.exp(-1.5)))
    assert doubtful == pytest.approx(1 / (1 + np.exp(2.5)))


def test_what_others_say_worse_does_not_count() -> None:
    assert lead_of_others(np.float32([1, 0.5, 0]), BEN) == 0
    assert lead_of_others(np.float32([1, 0.5, 0]), ~BEN) == 0.5


def test_no_sentences_are_behind_any() -> None:
    logits = np.float32([1, -2, 0])
    everybody = np.ones(3, np.bool_)
    assert lead_of_others(logits, everybody) == 11
    assert lead_of_others(logits, ~everybody) == 0
    assert lead_of_others(logits[:0], everybody[:0]) == 0
