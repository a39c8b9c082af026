"""Cuts long documents to a number of characters, at sentence ends, so that evidence stays in."""

from dataclasses import replace

import numpy as np

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.results.coverage import Spans
from spscanner_rag.text.segmentation import SentenceSegmenter


def shortened(document: Document, characters: int) -> Document:
    """The stretch of whole sentences of a document that holds the evidence of the most questions.

    Parameters
    ----------
    document : Document
    characters : int
        The most characters of the stretch, at least 1. A sentence that is longer is a stretch of its own.

    Returns
    -------
    Document
        The document itself if it is short enough. Else the first such stretch, with the questions whose evidence
        lies within it, at its new place; the other questions are left out.

    Raises
    ------
    ValueError
        If ``characters`` is below 1.
    """
    if characters < 1:
        raise ValueError(f"got documents of {characters} characters; expected at least 1")
    if len(document.text) <= characters or not document.text.strip():
        return document
    sentences = Spans.of(SentenceSegmenter().segment(document.text))
    start, stop = _stretch(sentences, document.questions, characters)
    kept = (question for question in document.questions if _is_within(question, start, stop))
    questions = tuple(
        replace(question, evidence=tuple((first - start, end - start) for first, end in question.evidence))
        for question in kept
    )
    return replace(document, text=document.text[start:stop], questions=questions)


def _stretch(sentences: Spans, questions: tuple[Question, ...], characters: int) -> tuple[int, int]:
    starts, ends = sentences
    last = np.searchsorted(ends, starts + characters, side="right") - 1
    stops = ends[np.maximum(last, np.arange(len(starts)))]  # (sentences,) of the stretch that each begins
    held = np.zeros(len(starts), np.int64)
    for question in questions:
        if question.evidence:
            first, end = min(question.evidence)[0], max(end for _, end in question.evidence)
            held += (starts <= first) & (end <= stops)
    best = int(np.argmax(held))
    return int(starts[best]), int(stops[best])


def _is_within(question: Question, start: int, stop: int) -> bool:
    return all(start <= first and end <= stop for first, end in question.evidence)
