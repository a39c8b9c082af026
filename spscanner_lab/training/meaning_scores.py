"""The scores of held-out questions, on which the weights of an encoder are fitted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.evidence.sampling import by_document, sample_questions
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.reading import Reading
from spscanner_rag.scanner import Scanner


class ScoredQuestion(NamedTuple):
    """A question's sentences, their scores and whether they are relevant."""

    source: str
    scanner: NDArray[np.float32]  # logits, (sentences,)
    cosines: NDArray[np.float32]
    relevant: NDArray[np.bool_]
    query: str = ""
    sentences: Sequence[str] = ()
    # logits of a sentence scan, (sentences,); None without one
    estimates: NDArray[np.float32] | None = None

    @property
    def is_answered(self) -> bool:
        """Whether a sentence is relevant."""
        return bool(self.relevant.any())


def score_questions(
    scanner: Scanner,
    meaning: Meaning,
    documents: Sequence[Document],
    per_source: int,
    sentence_scan: SentenceScan | None = None,
) -> tuple[list[ScoredQuestion], list[ScoredQuestion]]:
    """Score the sentences of held-out questions with a scanner and an encoder.

    Up to ``per_source`` questions of a source are scored, answered or not. Then each
    document is asked a question about a document of another source, which it does not
    answer: these are the second list.
    """
    reading = replace(scanner.reading, meaning=meaning, sentence_scan=sentence_scan)
    answerable = sample_questions(documents, per_source, answerable=True)
    unanswerable = sample_questions(documents, per_source, answerable=False)
    scored: list[ScoredQuestion] = []
    for document, questions in by_document(chain.from_iterable(answerable.values())):
        for question in _scored(scanner, reading, document, questions, True):
            if question.is_answered:
                scored.append(question)
    for document, questions in by_document(chain.from_iterable(unanswerable.values())):
        scored += _scored(scanner, reading, document, questions, False)
    first_questions = []
    for sample in answerable.values():
        for document, questions in by_document(sample):
            first_questions.append((document, questions[0]))
    elsewhere: list[ScoredQuestion] = []
    half = len(first_questions) // 2
    for number, (document, _) in enumerate(first_questions):
        other, foreign = first_questions[(number + half) % len(first_questions)]
        if other.source != document.source:
            elsewhere += _scored(scanner, reading, document, [foreign], False)
    return scored, elsewhere


def _scored(
    scanner: Scanner,
    reading: Reading,
    document: Document,
    questions: Sequence[Question],
    is_answered: bool,
) -> Iterator[ScoredQuestion]:
    indexed = reading.index_text(document.text)
    spans = Spans.of(indexed.units)
    vectors = reading.vectors(indexed, Meter())
    requests = [(question.text, document.text, indexed.units) for question in questions]
    scores_by_question = scanner.score_units_many(requests)
    for question, scores in zip(questions, scores_by_question, strict=True):
        evidence = question.evidence if is_answered else ()
        matched = reading.pair(question.text, indexed, None, vectors)
        assert matched.cosines is not None
        yield ScoredQuestion(
            document.source,
            scores.logits,
            matched.cosines,
            relevant_units(spans.starts, spans.ends, evidence),
            question.text,
            indexed.sentences,
            matched.estimates,
        )
