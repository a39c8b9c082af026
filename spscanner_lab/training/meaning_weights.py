"""Fit weights for a scanner's logits, an encoder's cosines and a cross-reader's logits.

The scores of questions come from `meaning_scores`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import softplus

from spscanner_lab.evidence.calibration import fit_platt
from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_rag.encoder.answer_evidence import answer_evidence
from spscanner_rag.encoder.meaning import LOWEST
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.text.folding import folded

FIT_STEPS = 150
FIT_RATE = 0.05

_FEATURES = ("scanner", "sentence", "near", "wide")
_START = (0.3, 20.0, 0.0, 0.0)  # factors of the features, before the fit

# by the identity of a question
CrossLogits = Mapping[int, NDArray[np.float32]]


def fitted_weights(
    questions: Sequence[ScoredQuestion],
    start: MeaningWeights,
    elsewhere: Sequence[ScoredQuestion] = (),
    cross: SentenceCrossReader | None = None,
) -> MeaningWeights:
    """Fit the weights of an encoder's cosines beside a scanner's logits.

    If there is a cross-reader, its logits are weighed as well. The weights minimize the
    softmax loss of the relevant sentences, with equal weight for every source. They are
    then scaled and shifted so that the sigmoid of a logit is the share of relevant
    sentences (Platt scaling). Raises ``ValueError`` if no sentence is relevant.
    """
    answered = [question for question in questions if question.is_answered]
    if not answered:
        raise ValueError(
            "got no question with evidence to fit the weights on; expected held-out"
            " documents with some"
        )
    # Calibrated first without the cross-reader, which reads what these logits select,
    # and then with it.
    weights = _without_cross(questions, answered, start)
    everything = [*questions, *elsewhere]
    cross_logits: dict[int, NDArray[np.float32]] = {}
    if cross is not None:
        for question in everything:
            logits = weights.logits(question.scanner, question.cosines)
            cross_logits[id(question)] = cross.logits(
                folded(question.query), question.sentences, logits
            )
        weights = _with_cross(questions, answered, weights, cross_logits)
    return replace(weights, **_answer_weights(everything, cross_logits))


def _without_cross(
    questions: Sequence[ScoredQuestion],
    answered: Sequence[ScoredQuestion],
    start: MeaningWeights,
) -> MeaningWeights:
    """Calibrated weights for the scanner's logits and the encoder's cosines."""
    features = []
    for name in _FEATURES:
        features.append(MeaningWeights(**{"scanner": 0.0} | {name: 1.0}))
    columns = []
    for question in answered:
        scores = []
        for feature in features:
            scores.append(feature.logits(question.scanner, question.cosines))
        columns.append(np.stack(scores, axis=1))
    factors = least_loss(columns, answered, _START)
    by_name = dict(zip(_FEATURES, factors, strict=True))
    weights = replace(start, **by_name, bias=0.0, cross=0.0)
    logits = []
    for question in questions:
        logits.append(weights.logits(question.scanner, question.cosines))
    scale, shift = fit_platt(np.concatenate(logits), relevant_of(questions))
    return _scaled(weights, scale, shift)


def _with_cross(
    questions: Sequence[ScoredQuestion],
    answered: Sequence[ScoredQuestion],
    weights: MeaningWeights,
    cross_logits: CrossLogits,
) -> MeaningWeights:
    """The weights with one for the cross-reader's logits, calibrated together."""

    def logits_of(
        question: ScoredQuestion,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        clipped = np.maximum(cross_logits[id(question)], LOWEST)
        return (
            weights.logits(question.scanner, question.cosines),
            np.asarray(clipped, np.float32),
        )

    columns = [np.stack(logits_of(question), axis=1) for question in answered]
    factor, cross_factor = least_loss(columns, answered, (1.0, 1.0))
    sums = []
    for question in questions:
        logits, clipped = logits_of(question)
        sums.append(factor * logits + cross_factor * clipped)
    scale, shift = fit_platt(np.concatenate(sums), relevant_of(questions))
    return replace(_scaled(weights, scale * factor, shift), cross=scale * cross_factor)


def relevant_of(questions: Iterable[ScoredQuestion]) -> NDArray[np.bool_]:
    """Which of all questions' sentences are relevant, one after the other."""
    return np.concatenate([question.relevant for question in questions])


def _scaled(weights: MeaningWeights, scale: float, shift: float) -> MeaningWeights:
    scaled = {name: scale * getattr(weights, name) for name in _FEATURES}
    return replace(weights, **scaled, bias=scale * weights.bias + shift)


def least_loss(
    columns: Sequence[NDArray[np.float32]],
    answered: Sequence[ScoredQuestion],
    start: Sequence[float],
) -> list[float]:
    """The factors for columns of scores that give the least softmax loss.

    ``columns`` are (sentences, k) for each question, and the result has k factors.
    """
    unit = torch.tensor([max(1.0, abs(value)) for value in start])
    factors = (torch.tensor(start) / unit).requires_grad_()
    optimizer = torch.optim.Adam([factors], FIT_RATE)
    counts = Counter(question.source for question in answered)
    examples = []
    for scores, question in zip(columns, answered, strict=True):
        relevant = torch.from_numpy(question.relevant)
        examples.append((torch.from_numpy(scores), relevant, counts[question.source]))
    for _ in range(FIT_STEPS):
        losses = []
        for scores_of_question, relevant, count in examples:
            logits = scores_of_question @ (factors * unit)
            excess = logits[~relevant].logsumexp(0) - logits[relevant]
            losses.append(softplus(excess).mean() / count)
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return list(map(float, factors.detach() * unit))


def _answer_weights(
    questions: Iterable[ScoredQuestion], cross_logits: CrossLogits
) -> dict[str, float]:
    """The weights that turn `answer_evidence` into the probability that a text answers.

    Texts that answer are compared with those that do not and, since these are few, with
    themselves without the answer. Empty if there are too few, or if the score does not
    tell.
    """
    scores: list[float] = []
    answers: list[bool] = []
    for question in questions:
        logits = cross_logits.get(id(question))
        irrelevant = ~question.relevant
        if question.is_answered:
            score = answer_evidence(question.cosines, logits)
            # twice, so that about half of all answer
            scores += [score, score]
            answers += [True, True]
        if irrelevant.any():
            if logits is not None:
                logits = logits[irrelevant]
            scores.append(answer_evidence(question.cosines[irrelevant], logits))
            answers.append(False)
    try:
        scale, shift = fit_platt(np.array(scores), answers)
    except ValueError:  # one kind only, or perfectly separable
        return {}
    if scale <= 0:
        return {}
    return {"answer_scale": scale, "answer_bias": shift}
