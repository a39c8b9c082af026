"""Fit how a sentence's place counts: echoes, headings, lists and speakers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_rag.encoder.meaning import LOWEST
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.scan.echoes import after_echoes
from spscanner_rag.scan.lead_ins import with_lead_ins
from spscanner_rag.scan.who_said_it import said_by_others
from spscanner_rag.text.folding import folded
from spscanner_rag.text.sentence_marks import sentence_marks
from spscanner_rag.text.speakers import speakers_of

ASKS: Final = (0.0, -1.0, -2.0, -3.0)
HEADING: Final = (0.0, -0.5, -1.0)
HANDED: Final = (0.0, 0.3, 0.6, 0.9)
SHARES: Final = (0.0, 0.3, 0.6)
OTHERS: Final = (0.0, -1.0, -2.0, -3.0, -4.0)
"""The weights that are tried."""


class _Logits(NamedTuple):
    """The logits of a question's sentences before their neighbours count."""

    logits: NDArray[np.float32]  # (sentences,)
    marks: NDArray[np.float32]  # (sentences, marks)
    # (sentences,); None if the question asks for nobody's words
    said_by_others: NDArray[np.bool_] | None
    relevant: NDArray[np.bool_]  # (sentences,)
    share: float  # of all questions, so that each source counts the same


def fitted_neighbour_weights(
    questions: Sequence[ScoredQuestion],
    weights: MeaningWeights,
    cross: SentenceCrossReader | None = None,
) -> MeaningWeights:
    """Return the weights with those of neighbours that give the least softmax loss.

    The weights of echoes are fitted first, then those of lists, then that of other
    speakers, which stays where no question asks for somebody's words.

    Parameters
    ----------
    questions : sequence of ScoredQuestion
        Held-out questions with their sentences. Those without a relevant sentence are
        left out; without any other, the weights do not change.
    weights : MeaningWeights
        The weights of all other scores.
    cross : SentenceCrossReader, optional
        The cross-reader, whose logits are added.
    """
    answered = [question for question in questions if question.is_answered]
    answered = [question for question in answered if not question.relevant.all()]
    counts = Counter(question.source for question in answered)
    scored = []
    for question in answered:
        scored.append(
            _Logits(
                _logits_of(question, weights, cross),
                sentence_marks(question.sentences),
                said_by_others(question.query, speakers_of(question.sentences)),
                question.relevant,
                1 / counts[question.source],
            )
        )
    candidates = []
    for asks, heading, handed in product(ASKS, HEADING, HANDED):
        candidates.append(replace(weights, asks=asks, heading=heading, handed=handed))
    weights = min(candidates, key=lambda candidate: _loss(scored, candidate))
    candidates = []
    for items, lead_in in product(SHARES, SHARES):
        candidates.append(replace(weights, items=items, lead_in=lead_in))
    weights = min(candidates, key=lambda candidate: _loss(scored, candidate))
    candidates = [weights]
    for others in OTHERS:
        candidates.append(replace(weights, others=others))
    return min(candidates, key=lambda candidate: _loss(scored, candidate))


def _logits_of(
    question: ScoredQuestion, weights: MeaningWeights, cross: SentenceCrossReader | None
) -> NDArray[np.float32]:
    logits = weights.logits(question.scanner, question.cosines, question.estimates)
    if cross is None:
        return logits
    cross_logits = cross.logits(folded(question.query), question.sentences, logits)
    added = weights.cross * np.maximum(cross_logits, LOWEST)
    return np.asarray(logits + added, np.float32)


def _loss(questions: Sequence[_Logits], weights: MeaningWeights) -> float:
    """The softmax loss of the relevant sentences."""
    total = 0.0
    for question in questions:
        logits = question.logits
        if question.said_by_others is not None:
            logits = weights.behind_asked(logits, question.said_by_others)
        logits = after_echoes(logits, question.marks, weights)
        logits = with_lead_ins(logits, question.marks, weights)
        others = np.logaddexp.reduce(logits[~question.relevant].astype(np.float64))
        excess = others - logits[question.relevant]
        total += question.share * float(np.logaddexp(0, excess).mean())
    return total
