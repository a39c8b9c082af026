"""Documents cut to the sentences that hold the evidence of most questions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.results.coverage import Spans
from spscanner_rag.text.segmentation import SentenceSegmenter


def shortened(document: Document, characters: int) -> Document:
    """Return the stretch of whole sentences that serves the most questions.

    It has at most ``characters``, and is the first of several as good. It keeps the
    questions whose evidence lies within it. A document that is short enough is returned
    unchanged.

    Examples
    --------
    >>> from spscanner_lab.evaluation.shortening import shortened
    >>> from spscanner_lab.evidence.questions import Document, Question
    >>> question = Question("q1", "Who slept?", ((11, 14),))
    >>> document = Document("d1", "tales", "", "It rained. She slept.", (question,))
    >>> shortened(document, 12).text
    'She slept.'
    """
    if len(document.text) <= characters or not document.text.strip():
        return document
    sentences = Spans.of(SentenceSegmenter().segment(document.text))
    start, stop = _best_stretch(sentences, document.questions, characters)
    questions = []
    for question in document.questions:
        if all(start <= first and end <= stop for first, end in question.evidence):
            questions.append(_moved(question, start))
    stretch = document.text[start:stop]
    return replace(document, text=stretch, questions=tuple(questions))


def _moved(question: Question, start: int) -> Question:
    evidence = ((first - start, end - start) for first, end in question.evidence)
    return replace(question, evidence=tuple(evidence))


def _best_stretch(
    sentences: Spans, questions: Sequence[Question], characters: int
) -> tuple[int, int]:
    starts, ends = sentences
    last = np.searchsorted(ends, starts + characters, side="right") - 1
    # (sentences,): where a stretch from each ends
    stops = ends[np.maximum(last, np.arange(len(starts)))]
    questions_held = np.zeros(len(starts), np.int64)
    for question in questions:
        if question.evidence:
            first = min(question.evidence)[0]
            end = max(end for _, end in question.evidence)
            questions_held += (starts <= first) & (end <= stops)
    best = int(np.argmax(questions_held))
    return int(starts[best]), int(stops[best])
