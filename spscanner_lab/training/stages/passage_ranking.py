"""How well a document's passages are ranked, as a validation measures it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.metrics import best_first, ranking_metrics
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.passages import bm25_scores
from spscanner_rag.lexical.words import index_words
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.units import Segmenter

RERANKED = 50
"""A validation reranks this many passages of the question's document: those that
BM25 ranks highest."""

# a question and texts -> scores, (texts,)
Score = Callable[[str, Sequence[str]], NDArray[np.float32]]


def ranking(
    score: Score,
    segmenter: Segmenter,
    document: Document,
    question: Question,
    names: Sequence[str],
) -> dict[str, float]:
    """Measures of a question's ranking.

    Evidence that is not among BM25's best `RERANKED` is not found.
    """
    text = document.text
    units = segmenter.segment(text)
    spans = Spans.of(units)
    relevant = relevant_units(spans.starts, spans.ends, question.evidence)
    if not relevant.any():
        return dict.fromkeys(names, 0.0)
    words = index_words([unit.model_text for unit in units])
    best = best_first(bm25_scores(words, question.text))[:RERANKED]
    passages = []
    for number in best:
        unit = units[number]
        passages.append(text[unit.start : unit.end])
    scores = np.full(len(units), -np.inf)
    scores[best] = score(question.text.strip(), passages)
    return ranking_metrics(scores, relevant, (1, 10))
