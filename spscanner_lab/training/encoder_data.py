"""The questions and sentences that an encoder's training draws, as tokens."""

import random
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.swapped_names import names_of, swapped_questions
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.text_units import units_of_text

# of the sentences around evidence, among which a question must find what answers it
STRETCH_TOKENS = 2000
STRETCH_QUESTIONS = 10  # at most
# sentences; a question with more is left out, since it looks for none of them alone
MAX_EVIDENCE = 60


class TokenizedQuestion(NamedTuple):
    """A question and the sentences of its document that answer it.

    There are none if the document leaves the question open.
    """

    ids: list[int]
    relevant: NDArray[np.int64]
    # the same about another name of the text, which answers none of them
    near_misses: tuple[list[int], ...] = ()


class TokenizedDocument(NamedTuple):
    """The sentences of a document, or of a stretch of it, and questions about them."""

    sentences: list[list[int]]
    questions: list[TokenizedQuestion]

    def answered(self) -> list[TokenizedQuestion]:
        """The questions that a sentence answers."""
        return [question for question in self.questions if len(question.relevant)]


Source = list[TokenizedDocument]


def read_sources(
    documents: Iterable[Document],
    encoder: TokenEncoder,
    max_documents: int,
    seed: int = 0,
) -> tuple[dict[str, Source], list[Document]]:
    """Tokenize documents by source, and set a tenth of them aside.

    The documents that `is_held_out` selects are set aside, untokenized. At most
    ``max_documents`` of each source are tokenized, drawn by ``seed``. Sources without a
    question that a few sentences answer are left out; ``ValueError`` if none is left.
    """
    documents_by_source: dict[str, list[Document]] = {}
    for document in documents:
        documents_by_source.setdefault(document.source, []).append(document)
    sources: dict[str, Source] = {}
    aside: list[Document] = []
    for name, shuffled in sorted(documents_by_source.items()):
        random.Random(seed).shuffle(shuffled)
        trained = []
        held_out = []
        for document in shuffled:
            if is_held_out(document.doc_id):
                held_out.append(document)
            else:
                trained.append(document)
        aside += held_out[: max(1, max_documents // 10)]
        source = _tokenized_source(trained[:max_documents], encoder)
        if source:
            sources[name] = source
    if not sources:
        raise ValueError(
            "got no question with evidence to train on; expected some in --data"
        )
    return sources, aside


def _tokenized_source(documents: Iterable[Document], encoder: TokenEncoder) -> Source:
    """The documents, as tokens, that answer a question."""
    source = []
    for document in documents:
        tokenized = _tokenized(document, encoder)
        if tokenized.answered():
            source.append(tokenized)
    return source


def _tokenized(document: Document, encoder: TokenEncoder) -> TokenizedDocument:
    units = units_of_text(document.text)
    spans = Spans.of(units)
    names = names_of(document.text)
    rng = random.Random(document.doc_id)
    questions = []
    for question in document.questions:
        is_relevant = relevant_units(spans.starts, spans.ends, question.evidence)
        relevant = np.flatnonzero(is_relevant)
        if not question.answerable or not question.evidence:
            relevant = relevant[:0]
        elif question.ambiguous or not 0 < len(relevant) <= MAX_EVIDENCE:
            continue
        near_misses = []
        if len(relevant):
            for swapped in swapped_questions(question.text, names, rng):
                near_misses.append(encoder.question_ids(folded(swapped)))
        question_ids = encoder.question_ids(folded(question.text))
        questions.append(TokenizedQuestion(question_ids, relevant, tuple(near_misses)))
    sentences = [encoder.ids(unit.model_text) for unit in fold_units(units)]
    return TokenizedDocument(sentences, questions)


def stretch_of(source: Source, rng: random.Random) -> TokenizedDocument:
    """Draw a stretch of sentences around one that answers a question.

    First a document is drawn, then one of its questions. The stretch comes with
    questions that it answers, and perhaps one that the document leaves open.
    """
    document = rng.choice(source)
    answered = document.answered()
    chosen = rng.choice(answered)
    center = int(rng.choice(chosen.relevant.tolist()))
    first, stop = _range_around(center, document.sentences, rng)
    questions = []
    for question in rng.sample(answered, len(answered)):
        relevant = question.relevant
        inside = relevant[(relevant >= first) & (relevant < stop)]
        if len(inside):
            questions.append(TokenizedQuestion(question.ids, inside - first))
    # the chosen question comes first, and so is never left out
    number = 0
    while questions[number].ids != chosen.ids:
        number += 1
    questions.insert(0, questions.pop(number))
    del questions[STRETCH_QUESTIONS:]
    is_complete = stop - first == len(document.sentences)
    if is_complete or rng.random() < 0.5:
        questions += _left_open(document)[:1]
    return TokenizedDocument(document.sentences[first:stop], questions)


def _range_around(
    center: int, sentences: list[list[int]], rng: random.Random
) -> tuple[int, int]:
    """First and stop of a range of about `STRETCH_TOKENS` tokens around a sentence."""
    first = center
    stop = center + 1
    tokens = len(sentences[center])
    share_before = rng.random()
    while tokens < STRETCH_TOKENS and (first or stop < len(sentences)):
        if first and (stop == len(sentences) or rng.random() < share_before):
            first -= 1
            tokens += len(sentences[first])
        else:
            tokens += len(sentences[stop])
            stop += 1
    return first, stop


def _left_open(document: TokenizedDocument) -> list[TokenizedQuestion]:
    """The questions that no sentence answers."""
    return [question for question in document.questions if not len(question.relevant)]
