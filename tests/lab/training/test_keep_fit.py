"""Weights and thresholds of the scores that people cut at."""

import numpy as np

from spscanner_lab.training.keep_fit import ScoredQuestion, fitted_keep_scale


def questions(n_questions: int = 200) -> list[ScoredQuestion]:
    """Texts of 20 sentences: one answers in each that is said to answer."""
    rng = np.random.default_rng(0)
    made: list[ScoredQuestion] = []
    for number in range(n_questions):
        answers = number % 2 == 0
        logits = rng.normal(-4.0, 1.0, 20)
        relevant = np.zeros(20, bool)
        relevant[3] = answers
        logits[3] = rng.normal(0.5, 1.0) if answers else rng.normal(-1.0, 1.0)
        answerable = 0.8 if answers else 0.2
        made.append(ScoredQuestion(logits, relevant, np.full(20, 50.0), answerable))
    return made


def test_sentences_that_answer_are_kept_and_others_are_not() -> None:
    asked = questions()
    scale = fitted_keep_scale(asked)
    assert scale.generous <= 0.5 <= scale.strict
    both = kept = right = 0
    for question in asked:
        scores = scale.scores(question.logits.astype(np.float32), question.answerable)
        both += int((scores >= 0.5)[question.relevant].sum())
        kept += int((scores >= 0.5).sum())
        right += int(question.relevant.sum())
    assert 2 * both / (kept + right) > 0.9


def test_a_text_that_answers_raises_the_scores_of_its_sentences() -> None:
    scale = fitted_keep_scale(questions())
    assert scale.answerable > 0
    assert scale.logit > 0


def test_the_fit_does_not_depend_on_the_order_of_questions() -> None:
    asked = questions(60)
    assert fitted_keep_scale(asked) == fitted_keep_scale(asked[::-1])
