"""Questions made from plain text and kept as a question file, for training without written questions.

- Headings: the heading is the question, the sentences of its section are the evidence.
- Key phrases: words that this document repeats together and that are rare in others; the evidence is the
  sentences that contain them.
- Masked sentences: a sentence without its name or number and without some of its words; the evidence is that
  sentence.
- Linked sentences: words of one sentence and the rest of another, masked, that a rare term links; the evidence is
  both.
- Negatives: questions of other documents, which this one does not answer.

Such evidence is rough: sentences that are not marked may answer the question too. A teacher makes up for that.
"""

import json
import random
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.text_files import content_key, read_text_documents, sampled_documents
from spscanner_rag.lab.training.pseudo.headings import heading_questions
from spscanner_rag.lab.training.pseudo.key_phrases import COUNTED_CHARACTERS, WordRarity, phrase_questions
from spscanner_rag.lab.training.pseudo.linked_sentences import linked_questions
from spscanner_rag.lab.training.pseudo.masked_sentences import masked_questions
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.text.segmentation import SentenceSegmenter

LEAST_SENTENCES = 8
"""Shorter documents get no questions."""

_FORMAT = "1"
_REMEMBERED_QUESTIONS = 400
_LEAST_REMEMBERED = 20
"""Latest questions of other documents from which negatives are drawn, and the least number for a draw."""

_CONTENT_WORD = re.compile(r"\w{4,}")
_CUTS = (re.compile(r"\n[^\S\n]*\n"), re.compile(r"\n"), re.compile(r"[.!?][\"')\]”’]*\s"), re.compile(r"\s"))  # noqa: RUF001


class QuestionMaker(Protocol):
    """Makes questions of one kind from a text."""

    def __call__(
        self, text: str, spans: Sequence[tuple[int, int]], count: int, draw: random.Random
    ) -> list[Question]:
        """At most ``count`` questions with their evidence; ``spans`` are the text's sentences (start, end)."""
        ...


def pseudo_question_file(
    texts: Sequence[Path], recipe: Recipe, folder: Path, notify: Notify = lambda message: None
) -> Path:
    """The question file of plain texts, in the format of ``--data``; written to the folder unless it exists.

    Its name is a hash of the texts, the recipe's ``pseudo_…`` numbers and its seed. ``notify`` is called with a
    message after each text file. Raises `DataError` for a text file that cannot be read, with file and line, and
    ``ValueError`` if no question could be made from the texts.
    """
    numbers = {key: value for key, value in recipe.to_dict().items() if key.startswith("pseudo_")}
    del numbers["pseudo_weight"]  # changes how questions are drawn, not how they are made
    if not recipe.pseudo_linked:
        del numbers["pseudo_linked"]  # keeps the names of files made before this kind of question
    path = folder / f"{content_key(texts, _FORMAT, str(recipe.seed), json.dumps(numbers))}.jsonl"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rarity = WordRarity(sampled_documents(texts, COUNTED_CHARACTERS))
    total = 0
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8") as out:
        for number, file in enumerate(texts, 1):
            made = 0
            for document in pseudo_documents(read_text_documents([file]), rarity, recipe):
                out.write(json.dumps(_record(document)) + "\n")
                made += len(document.questions)
            total += made
            notify(f"pseudo-questions of {file.name}, {number} of {len(texts)} files: {made:,}")
        if not total:
            raise ValueError(
                f"{texts[0]}: no pseudo-question could be made; expected documents of several sentences"
            )
    return path


def pseudo_documents(documents: Iterable[Document], rarity: WordRarity, recipe: Recipe) -> Iterator[Document]:
    """Cut plain documents to a bounded length and give each at least one question that it answers.

    The recipe's ``pseudo_…`` numbers and its seed decide, so that the questions are the same in every run.
    """
    makers: tuple[tuple[QuestionMaker, int], ...] = (
        (heading_questions, recipe.pseudo_headings),
        (partial(phrase_questions, rarity=rarity), recipe.pseudo_phrases),
        (masked_questions, recipe.pseudo_masked),
        (partial(linked_questions, rarity=rarity), recipe.pseudo_linked),
    )
    segmenter = SentenceSegmenter()
    others: deque[tuple[str, Question]] = deque(maxlen=_REMEMBERED_QUESTIONS)  # document's id, question
    for whole in documents:
        for number, text in enumerate(text_pieces(whole.text, recipe.pseudo_characters), 1):
            spans = [(unit.start, unit.end) for unit in segmenter.segment(text)]
            if len(spans) < LEAST_SENTENCES:
                continue
            piece = replace(whole, doc_id=f"{whole.doc_id}.{number}", text=text)
            draw = random.Random(f"{recipe.seed}-{piece.doc_id}")
            questions = [question for make, count in makers for question in make(text, spans, count, draw)]
            if not questions:
                continue
            foreign = _foreign(text, whole.doc_id, others, recipe.pseudo_negatives, draw)
            numbered = (
                replace(question, qid=f"{piece.doc_id}-{number}-{question.qid}")
                for number, question in enumerate([*questions, *foreign], 1)
            )
            yield replace(piece, questions=tuple(numbered))
            others.extend((whole.doc_id, question) for question in questions)


def text_pieces(text: str, most: int) -> Iterator[str]:
    """Cut a text into pieces of at most ``most`` characters that, joined, are the text.

    A piece ends at the last end of a paragraph in its second half; without one, at that of a line, a sentence or a
    word.
    """
    start = 0
    while len(text) - start > most:
        found = (
            [match.end() for match in cut.finditer(text, start + most // 2, start + most)] for cut in _CUTS
        )
        stop = next((ends[-1] for ends in found if ends), start + most)
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]


def _foreign(
    text: str, doc_id: str, others: Iterable[tuple[str, Question]], count: int, draw: random.Random
) -> list[Question]:
    """Questions of other documents whose words mostly do not occur in this one."""
    own = set(_CONTENT_WORD.findall(text.lower()))
    found = []
    for other, question in others:
        words = set(_CONTENT_WORD.findall(question.text.lower()))
        if other != doc_id and len(words & own) < len(words) / 2:
            found.append(question)
    if len(found) < _LEAST_REMEMBERED:
        return []
    return [
        replace(question, evidence=(), answerable=False)
        for question in draw.sample(found, min(count, len(found)))
    ]


def _record(document: Document) -> dict[str, object]:
    """A document as a line of a question file."""
    keys = ("doc_id", "source", "title", "split", "text")
    questions = [
        {"qid": q.qid, "question": q.text, "evidence": q.evidence, "answerable": q.answerable}
        for q in document.questions
    ]
    return {key: getattr(document, key) for key in keys} | {"questions": questions}
