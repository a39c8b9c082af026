"""Fitting the weights of sentences that ask and of headings."""

from collections.abc import Iterator

import numpy as np

from spscanner_lab.training.echo_weights import fitted_echo_weights
from spscanner_lab.training.meaning_scores import ScoredQuestion
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
    weights = fitted_echo_weights(list(questions(2)), MeaningWeights())
    assert weights.asks == -3
    assert weights.handed == 0.9


def test_questions_that_are_the_evidence_count_as_before() -> None:
    start = MeaningWeights(sentence=7.0)
    assert fitted_echo_weights(list(questions(1)), start) == start


def test_without_evidence_nothing_changes() -> None:
    start = MeaningWeights(sentence=7.0)
    unanswered = [
        question._replace(relevant=np.zeros(4, bool)) for question in questions(1)
    ]
    assert fitted_echo_weights(unanswered, start) == start
