"""Fitting the weights of sentences that ask, of headings and of lists."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_lab.training.neighbour_weights import (
    _logits_of,
    fitted_neighbour_weights,
)
from spscanner_rag.encoder.meaning import LOWEST
from spscanner_rag.encoder.meaning_weights import MeaningWeights

SENTENCES = ["It rained.", "Who signs the papers?", "Carla does.", "They left at six."]


def questions(relevant_place: int) -> Iterator[ScoredQuestion]:
    """Questions that the second sentence asks as well, and so matches best."""
    draw = np.random.default_rng(0)
    for _ in range(20):
        scanner = np.float32([-4, 3, 0, -3]) + np.float32(draw.normal(0, 0.5, 4))
        relevant = np.arange(4) == relevant_place
        cosines = np.zeros(4, np.float32)
        yield ScoredQuestion("a", scanner, cosines, relevant, "who?", SENTENCES)


def test_answers_below_questions_make_questions_count_less() -> None:
    weights = fitted_neighbour_weights(list(questions(2)), MeaningWeights())
    assert weights.asks == -3
    assert weights.handed == 0.9


def test_questions_that_are_the_evidence_count_as_before() -> None:
    start = MeaningWeights(sentence=7.0)
    assert fitted_neighbour_weights(list(questions(1)), start) == start


def test_without_evidence_nothing_changes() -> None:
    start = MeaningWeights(sentence=7.0)
    unanswered = [
        question._replace(relevant=np.zeros(4, bool)) for question in questions(1)
    ]
    assert fitted_neighbour_weights(unanswered, start) == start


class Certain:
    """A cross-reader that is certain of the sentence that asks."""

    def logits(
        self, query: str, sentences: Sequence[str], logits: object
    ) -> NDArray[np.float32]:
        of_sentences = [9.0 * sentence.endswith("?") - 99 for sentence in sentences]
        return np.array(of_sentences, np.float32)


def test_what_a_cross_reader_says_is_added_and_bounded_below() -> None:
    cross: Any = Certain()
    weights = MeaningWeights(cross=0.5)
    question = next(questions(1))
    alone = _logits_of(question, weights, None)
    together = _logits_of(question, weights, cross)
    assert alone.tolist() == question.scanner.tolist()
    assert (together - alone).tolist() == pytest.approx([0.5 * LOWEST] * 4)


def test_items_below_a_good_lead_in_get_a_share_of_its_lead() -> None:
    sentences = ["You get help with:", "- rent", "- heating", "They left at six."]
    draw = np.random.default_rng(0)
    scored = []
    for _ in range(20):
        scanner = np.float32([3, -2, -2, 0]) + np.float32(draw.normal(0, 0.5, 4))
        relevant = np.arange(4) < 3
        scored.append(
            ScoredQuestion(
                "a", scanner, np.zeros(4, np.float32), relevant, "what?", sentences
            )
        )
    weights = fitted_neighbour_weights(scored, MeaningWeights())
    assert weights.items == 0.6
    assert weights.handed == 0


CHAT = ["Ann: I will sign.", "Ben: I will not.", "Ann: Why?", "Ben: It rained."]


def asked_of_ann(query: str) -> list[ScoredQuestion]:
    """Questions whose evidence Ann says, though Ben's words match better."""
    scored = []
    for _ in range(20):
        scanner = np.float32([1, 2, -3, -3])
        relevant = np.arange(4) == 0
        cosines = np.zeros(4, np.float32)
        scored.append(ScoredQuestion("a", scanner, cosines, relevant, query, CHAT))
    return scored


def test_other_speakers_count_less_where_one_is_asked_for() -> None:
    weights = MeaningWeights(asks=-3.0)
    fitted = fitted_neighbour_weights(asked_of_ann("What will Ann sign?"), weights)
    assert fitted.others == -4


def test_their_weight_stays_where_nobody_is_asked_for() -> None:
    weights = MeaningWeights(asks=-3.0, others=-2.0)
    fitted = fitted_neighbour_weights(asked_of_ann("What will be signed?"), weights)
    assert fitted.others == -2
