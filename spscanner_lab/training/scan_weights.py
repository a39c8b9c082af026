"""Fit the weights of a sentence scan's logits beside those of the token reader."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.calibration import fit_platt
from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_lab.training.meaning_weights import least_loss, relevant_of
from spscanner_rag.encoder.meaning import LOWEST
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.text.folding import folded

_START = (0.1, 1.0)  # factors of the token reader's and the scan's logit


def fitted_scan_weights(
    questions: Sequence[ScoredQuestion],
    start: MeaningWeights,
    cross: SentenceCrossReader | None = None,
) -> MeaningWeights:
    """Return weights with those of a sentence scan, whose logits are calibrated.

    The weights minimize the softmax loss of the relevant sentences, with equal weight
    for every source. The weight of the cross-reader stays; the others are scaled to it.

    Parameters
    ----------
    questions : sequence of ScoredQuestion
        With the calibrated logits of the scan.
    start : MeaningWeights
        The weights without a scan, which are kept.
    cross : SentenceCrossReader, optional
        The cross-reader, whose logits are added.

    Raises
    ------
    ValueError
        If no question has a relevant sentence.
    """
    answered = [question for question in questions if question.is_answered]
    if not answered:
        raise ValueError(
            "got no question with evidence to fit the weights on; expected held-out"
            " documents with some"
        )
    columns = []
    for question in answered:
        assert question.estimates is not None
        columns.append(np.stack([question.scanner, question.estimates], axis=1))
    scanner, scan = least_loss(columns, answered, _START)
    weights = replace(start, scan_scanner=scanner, scan=scan, scan_bias=0.0, sure=0.0)
    scale, shift = _platt(questions, weights)
    weights = _rescaled(weights, scale, shift)
    if cross is None or not start.cross:
        return weights
    return _beside_cross(questions, answered, weights, cross)


def _beside_cross(
    questions: Sequence[ScoredQuestion],
    answered: Sequence[ScoredQuestion],
    weights: MeaningWeights,
    cross: SentenceCrossReader,
) -> MeaningWeights:
    """The weights on the cross-reader's scale, and calibrated together with it."""
    clipped: dict[int, NDArray[np.float32]] = {}
    for question in questions:
        logits = _logits_of(question, weights)
        cross_logits = cross.logits(folded(question.query), question.sentences, logits)
        clipped[id(question)] = np.maximum(cross_logits, LOWEST)
    columns = []
    for question in answered:
        logits = _logits_of(question, weights)
        columns.append(np.stack([logits, clipped[id(question)]], axis=1))
    factor, cross_factor = least_loss(columns, answered, (1.0, 1.0))
    scale = factor * weights.cross / cross_factor
    sums = []
    for question in questions:
        added = weights.cross * clipped[id(question)]
        sums.append(scale * _logits_of(question, weights) + added)
    platt_scale, platt_shift = fit_platt(np.concatenate(sums), relevant_of(questions))
    # the scale would change the cross-reader's weight; the sign is right without it
    shift = platt_shift / platt_scale
    return replace(
        _rescaled(weights, scale, shift),
        # the scan is calibrated as the weights were before the cross-reader
        unread=scale,
        unread_bias=shift,
    )


def _platt(
    questions: Sequence[ScoredQuestion], weights: MeaningWeights
) -> tuple[float, float]:
    logits = [_logits_of(question, weights) for question in questions]
    return fit_platt(np.concatenate(logits), relevant_of(questions))


def _logits_of(
    question: ScoredQuestion, weights: MeaningWeights
) -> NDArray[np.float32]:
    return weights.logits(question.scanner, question.cosines, question.estimates)


def _rescaled(weights: MeaningWeights, scale: float, shift: float) -> MeaningWeights:
    return replace(
        weights,
        scan=scale * weights.scan,
        scan_scanner=scale * weights.scan_scanner,
        scan_bias=scale * weights.scan_bias + shift,
    )
