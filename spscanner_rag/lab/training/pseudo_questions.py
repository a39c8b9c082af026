"""Questions made from plain text and kept as a question file, for training without written questions.

- Headings: the heading is the question, the sentences of its section are the evidence.
- Key phrases: words that this document repeats together and that are rare in others; the evidence is the
  sentences that contain them.
- Masked sentences: a sentence without its name or number and without some of its words; the evidence is that
  sentence.
- Negatives: questions of other documents, which this one does not answer.

Such evidence is rough: sentences that are not marked may answer the question too. A teacher makes up for that.
"""

import json
import math
import random
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.documents import content_key, read_text_documents, sampled_documents
from spscanner_rag.lexical.languages import STOP_WORDS
from spscanner_rag.text.segmentation import SentenceSegmenter

HEADINGS, PHRASES, MASKED, NEGATIVES = 3, 3, 6, 2  # most questions of each kind for a document

MOST_CHARACTERS = 30_000  # longest document that plain texts are cut into, at ends of paragraphs

LEAST_SENTENCES = 8  # shorter documents get no questions

SECTION_SENTENCES = 12
"""Sentences at the start of a section that are evidence of its heading: later ones stray from it."""

PHRASE_WORDS = 3
PHRASE_SENTENCES = range(2, 13)
"""Words of a key phrase, at most, and numbers of sentences with it, which are its evidence."""

COUNTED_CHARACTERS = 20_000_000
"""Characters of the corpus in which words are counted, since their vocabulary is held in memory."""

MASKED_WORDS = range(8, 51)
DROPPED_SHARE = 0.25
"""Words of a masked sentence, and the share that is left out: unchanged, it teaches to compare strings."""

_FORMAT = "2"
_REMEMBERED_QUESTIONS = 400
_LEAST_REMEMBERED = 20
"""Latest questions of other documents from which negatives are drawn, and the least number for a draw."""

_CONTENT_WORD = re.compile(r"\w{4,}")
_CUTS = (re.compile(r"\n[^\S\n]*\n"), re.compile(r"\n"), re.compile(r"[.!?][\"')\]”’]*\s"), re.compile(r"\s"))  # noqa: RUF001

_LINE = re.compile(r"[^\n]+")
_HEADING_CHARACTERS, _HEADING_WORDS = 80, 12
_BODY_CHARACTERS = 80
_NUMBERING = re.compile(r"^(?:(?:chapter|section|part|article|schedule)\s+)?[\divxlc.()]+[.):]?\s+", re.I)
_THREE_LETTERS = re.compile(r"[^\W\d_]{3,}")

_PHRASE_WORD = re.compile(r"[^\W\d_][\w'’-]*")  # noqa: RUF001
_PHRASE_CHOICE = 4  # best phrases for each one that is drawn

_LEAST_KEPT = 3  # words of a masked sentence
_ASKED = {"year": "which year", "number": "how many", "name": "who or what"}
_NAME = r"(?:[A-Z][\w'’.-]*\w)(?:\s+(?:(?:of|the|de|von|van)\s+)?[A-Z][\w'’.-]*\w)*"  # noqa: RUF001
_YEAR = r"\b(?:1[0-9]|20)\d\d\b"
_NUMBER = r"\b\d[\d.,]*\d\b|\b\d\b"
_ENTITY = re.compile(rf"(?P<year>{_YEAR})|(?P<number>{_NUMBER})|(?P<name>\b{_NAME})")

Spans = Sequence[tuple[int, int]]  # of a text's sentences: (start, end)


def pseudo_question_file(
    texts: Sequence[Path], seed: int, folder: Path, notify: Notify = lambda message: None
) -> Path:
    """The question file of plain texts, named by a hash of texts and seed; written unless it exists.

    ``DataError`` for a text file that cannot be read, and ``ValueError`` if no question could be made.
    """
    path = folder / f"{content_key(texts, _FORMAT, str(seed))}.jsonl"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rarity = WordRarity(sampled_documents(texts, COUNTED_CHARACTERS))
    total = 0
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8") as out:
        for number, file in enumerate(texts, 1):
            made = 0
            for document in pseudo_documents(read_text_documents([file]), rarity, seed):
                out.write(json.dumps(_record(document)) + "\n")
                made += len(document.questions)
            total += made
            notify(f"pseudo-questions of {file.name}, {number} of {len(texts)} files: {made:,}")
        if not total:
            raise ValueError(
                f"{texts[0]}: no pseudo-question could be made; expected documents of several sentences"
            )
    return path


def pseudo_documents(
    documents: Iterable[Document], rarity: "WordRarity", seed: int, most_characters: int = MOST_CHARACTERS
) -> Iterator[Document]:
    """Cut plain documents to a bounded length and give each at least one question that it answers, by the seed."""
    segmenter = SentenceSegmenter()
    others: deque[tuple[str, Question]] = deque(maxlen=_REMEMBERED_QUESTIONS)  # document's id, question
    for whole in documents:
        for number, text in enumerate(text_pieces(whole.text, most_characters), 1):
            spans = [(unit.start, unit.end) for unit in segmenter.segment(text)]
            if len(spans) < LEAST_SENTENCES:
                continue
            piece = replace(whole, doc_id=f"{whole.doc_id}.{number}", text=text)
            draw = random.Random(f"{seed}-{piece.doc_id}")
            questions = heading_questions(text, spans, HEADINGS, draw)
            questions += phrase_questions(text, spans, PHRASES, draw, rarity)
            questions += masked_questions(text, spans, MASKED, draw)
            if not questions:
                continue
            numbered = (
                replace(question, qid=f"{piece.doc_id}-{number}-{question.qid}")
                for number, question in enumerate(
                    [*questions, *_foreign(text, whole.doc_id, others, draw)], 1
                )
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


def heading_questions(text: str, spans: Spans, count: int, draw: random.Random) -> list[Question]:
    """Headings; their evidence is one span, the heading and its section's first sentences."""
    found = []
    for start, body, stop in _sections(text):
        inside = [span for span in spans if span[1] > body and span[0] < stop][:SECTION_SENTENCES]
        title = _NUMBERING.sub("", text[start:body].strip()) or text[start:body].strip()
        if inside and _THREE_LETTERS.search(title):
            end = min(inside[-1][1], stop)
            found.append(Question("heading", title, ((start, end),)))
    times = Counter(question.text for question in found)
    kept = [question for question in found if times[question.text] == 1]  # others have several sections
    return draw.sample(kept, min(count, len(kept)))


def _sections(text: str) -> Iterator[tuple[int, int, int]]:
    """Start of each heading, of its body, and the end of its section."""
    lines = [match.span() for match in _LINE.finditer(text) if match.group().strip()]
    headings = [
        (line, body)
        for line, body in pairwise(lines)
        if _is_heading(text[slice(*line)].strip()) and len(text[slice(*body)].strip()) >= _BODY_CHARACTERS
    ]
    stops = [line[0] for line, _ in headings[1:]] + [len(text)]
    for (line, body), stop in zip(headings, stops, strict=False):
        start = line[0] + len(text[slice(*line)]) - len(text[slice(*line)].lstrip())
        yield start, body[0], stop


def _is_heading(line: str) -> bool:
    """A short line that starts like a title and does not end like a sentence, unless it asks."""
    return (
        len(line) <= _HEADING_CHARACTERS
        and len(line.split()) <= _HEADING_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and line[-1] not in '.!:;,…"”’-'  # noqa: RUF001
        and _THREE_LETTERS.search(line) is not None
    )


class WordRarity:
    """The rarity of words among documents, in a part of the corpus with about `COUNTED_CHARACTERS`."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._frequency: Counter[str] = Counter()
        self._documents = 0
        for document in documents:
            self._frequency.update({word.lower() for word in _PHRASE_WORD.findall(document.text)})
            self._documents += 1

    def idf(self, word: str) -> float:
        """Logarithm of the inverse share of documents with the word, never below 0."""
        return math.log((1 + self._documents) / (1 + self._frequency[word.lower()]))


def phrase_questions(
    text: str, spans: Spans, count: int, draw: random.Random, rarity: WordRarity
) -> list[Question]:
    """Key phrases, drawn from the best; their evidence is the sentences that contain them."""
    holders: dict[tuple[str, ...], list[int]] = {}  # phrase: sentences
    written: dict[tuple[str, ...], str] = {}
    for number, (start, end) in enumerate(spans):
        words = [match.span() for match in _PHRASE_WORD.finditer(text, start, end)]
        for phrase, wording in _phrases(text, words).items():
            holders.setdefault(phrase, []).append(number)
            written.setdefault(phrase, wording)
    scores = {
        phrase: math.log(1 + len(found)) * sum(rarity.idf(word) for word in phrase)
        for phrase, found in holders.items()
        if len(found) in PHRASE_SENTENCES
    }
    best = sorted(scores, key=lambda phrase: (-scores[phrase], phrase))[: _PHRASE_CHOICE * count]
    return [
        Question("phrase", written[phrase], tuple(spans[number] for number in holders[phrase]))
        for phrase in draw.sample(best, min(count, len(best)))
    ]


def _phrases(text: str, words: Spans) -> dict[tuple[str, ...], str]:
    """Phrases of a sentence that neither start nor end with a stop word: in lower case, and as written."""
    found: dict[tuple[str, ...], str] = {}
    lowered = [text[start:end].lower() for start, end in words]
    for first in range(len(words)):
        for last in range(first, min(first + PHRASE_WORDS, len(words))):
            if last > first and text[words[last - 1][1] : words[last][0]] != " ":
                break  # the words of a phrase are separated by single spaces
            ends = (lowered[first], lowered[last])
            if all(word not in STOP_WORDS and len(word) > 2 for word in ends):
                found.setdefault(tuple(lowered[first : last + 1]), text[words[first][0] : words[last][1]])
    return found


def masked_questions(text: str, spans: Spans, count: int, draw: random.Random) -> list[Question]:
    """Masked sentences; their evidence is the sentence, wherever the text has it."""
    found: list[Question] = []
    for number in draw.sample(range(len(spans)), len(spans)):
        if len(found) == count:
            break
        sentence = text[slice(*spans[number])]
        question = _masked(sentence, draw)
        if question is not None:
            same = tuple(span for span in spans if text[slice(*span)] == sentence)
            found.append(Question("masked", question, same))
    return found


def _masked(sentence: str, draw: random.Random) -> str | None:
    """The sentence as a question; None without an entity, and for a very short or long sentence."""
    if len(sentence.split()) not in MASKED_WORDS:
        return None
    # one at the very start is left out, since a capital there says nothing
    entities = [match for match in _ENTITY.finditer(sentence) if match.start() > 0]
    if not entities:
        return None
    entity = draw.choice(entities)
    before, after = sentence[: entity.start()], sentence[entity.end() :]
    kept_before = [word for word in before.split() if draw.random() >= DROPPED_SHARE]
    kept_after = [word for word in after.split() if draw.random() >= DROPPED_SHARE]
    if len(kept_before) + len(kept_after) < _LEAST_KEPT:
        return None
    return " ".join([*kept_before, _ASKED[str(entity.lastgroup)], *kept_after]).rstrip(" .!?,;:") + "?"


def _foreign(
    text: str, doc_id: str, others: Iterable[tuple[str, Question]], draw: random.Random
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
    return [replace(q, evidence=(), answerable=False) for q in draw.sample(found, min(NEGATIVES, len(found)))]


def _record(document: Document) -> dict[str, object]:
    """A document as a line of a question file."""
    keys = ("doc_id", "source", "title", "split", "text")
    questions = [
        {"qid": q.qid, "question": q.text, "evidence": q.evidence, "answerable": q.answerable}
        for q in document.questions
    ]
    return {key: getattr(document, key) for key in keys} | {"questions": questions}
