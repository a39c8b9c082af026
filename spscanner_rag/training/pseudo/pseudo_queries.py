"""Questions made from plain text: material for a scanner where nobody has written any.

- Headings: the heading is the question, the sentences of its section are the evidence.
- Key phrases: words that stand together several times in this document and are rare in others; the evidence is
  the sentences that hold them.
- Masked sentences: a sentence without its name or number and without some of its words; the evidence is that
  sentence.
- Questions of other documents, which this one does not answer.

Such evidence is rough: the sentences that are not marked may fit as well. That is what a teacher is for.
"""

import random
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spscanner_rag.evidence.questions import Document, Question
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.training.data.text_pieces import text_pieces
from spscanner_rag.training.pseudo.headings import heading_questions
from spscanner_rag.training.pseudo.key_phrases import WordRarity, phrase_questions
from spscanner_rag.training.pseudo.masked_sentences import masked_questions
from spscanner_rag.training.recipe import Recipe

LEAST_SENTENCES = 8
"""Documents of fewer sentences leave nothing to choose."""

_REMEMBERED_QUESTIONS = 400
_LEAST_REMEMBERED = 20
"""Questions of other documents from which negatives are drawn, and how many there must be for that."""

_CONTENT_WORD = re.compile(r"\w{4,}")


def pseudo_documents(documents: Iterable[Document], rarity: WordRarity, recipe: Recipe) -> Iterator[Document]:
    """Plain documents, cut to a bounded length, with pseudo-questions.

    The same documents and recipe give the same questions.

    Parameters
    ----------
    documents : iterable of Document
        Without questions.
    rarity : WordRarity
    recipe : Recipe
        Its ``pseudo_…`` numbers and its seed.

    Yields
    ------
    Document
        With at least one question that it answers.
    """
    segmenter = SentenceSegmenter()
    others: deque[tuple[str, Question]] = deque(maxlen=_REMEMBERED_QUESTIONS)  # document's id, question
    for whole in documents:
        for number, text in enumerate(text_pieces(whole.text, recipe.pseudo_characters), 1):
            spans = [(unit.start, unit.end) for unit in segmenter.segment(text)]
            if len(spans) < LEAST_SENTENCES:
                continue
            piece = replace(whole, doc_id=f"{whole.doc_id}.{number}", text=text)
            draw = random.Random(f"{recipe.seed}-{piece.doc_id}")
            questions = _questions(text, spans, rarity, recipe, draw)
            if not questions:
                continue
            foreign = _foreign(text, whole.doc_id, others, recipe.pseudo_negatives, draw)
            yield replace(piece, questions=_numbered(piece.doc_id, [*questions, *foreign]))
            others.extend((whole.doc_id, question) for question in questions)


def _questions(
    text: str, spans: Sequence[tuple[int, int]], rarity: WordRarity, recipe: Recipe, draw: random.Random
) -> list[Question]:
    """Questions that a text answers."""
    return [
        *heading_questions(text, spans, recipe.pseudo_headings, draw),
        *phrase_questions(text, spans, rarity, recipe.pseudo_phrases, draw),
        *masked_questions(text, spans, recipe.pseudo_masked, draw),
    ]


def _foreign(
    text: str, doc_id: str, others: Iterable[tuple[str, Question]], count: int, draw: random.Random
) -> list[Question]:
    """Questions of other documents most of whose words do not stand in this one."""
    own = set(_CONTENT_WORD.findall(text.lower()))
    found = []
    for other, question in others:
        words = set(_CONTENT_WORD.findall(question.text.lower()))
        if other != doc_id and len(words & own) < len(words) / 2:
            found.append(question)
    if len(found) < _LEAST_REMEMBERED:
        return []
    return [replace(question, evidence=(), answerable=False) for question in draw.sample(found, count)]


def _numbered(doc_id: str, questions: Iterable[Question]) -> tuple[Question, ...]:
    return tuple(
        replace(question, qid=f"{doc_id}-{number}-{question.qid}")
        for number, question in enumerate(questions, 1)
    )
