r"""Documents with questions, and the files that hold them.

Each line of a question file is a document with questions and the character spans that
answer them:

    {"doc_id": str, "source": str, "split": str, "title": str, "text": str,
     "questions": [{"qid": str, "question": str, "evidence": [[start, end], ...]}]}

A question may also have ``answers`` (right answers in words), ``answer_form`` (how long
they are, one of `ANSWER_FORMS`), ``choices`` (of a multiple-choice question; its
answers are among them), ``multiple_choice`` (true if it is one whose options are not
known), ``answerable`` (false if the document does not answer it) and
``evidence_ambiguous`` (true if the answer's text occurs more than once, so the span may
be the wrong place). A document may have ``category``, a group of sources in tables, and
``tokens``, its length by its makers' tokenizer. Other keys are ignored.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.data_lines import (
    DataError,
    expecting,
    numbered_lines,
    require,
)
from spscanner_rag.system.strict_json import parse_object

ANSWER_FORMS = ("phrase", "sentence", "paragraph")

MOST_CHOICES = 26  # options of a multiple-choice question, which letters name

MEANS = frozenset({"macro", "micro"})
"""Names of means over sources in results, which no source may have."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a document, its evidence, and right answers in words.

    Attributes
    ----------
    qid, text : str
        Its id and its words.
    evidence : tuple
        The character spans that answer it.
    answerable : bool
        False if the document does not answer it.
    ambiguous : bool
        True if the evidence may be the wrong place of several.
    answers, choices : tuple of str
        Right answers; the options of a multiple-choice question.
    answer_form : str
        How long an answer should be; empty if the data do not say.
    multiple_choice : bool
        True if an option is to be picked whose alternatives the data do not list.
    """

    qid: str
    text: str
    evidence: tuple[tuple[int, int], ...]
    answerable: bool = True
    ambiguous: bool = False
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    answer_form: str = ""
    multiple_choice: bool = False

    @property
    def is_choice(self) -> bool:
        """Whether one of several options is to be picked, listed or not."""
        return self.multiple_choice or bool(self.choices)


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its questions.

    ``category`` is a group of sources in tables, and ``tokens`` the length by the
    makers' tokenizer; "" and None if the data do not say.
    """

    doc_id: str
    source: str
    title: str
    text: str
    questions: tuple[Question, ...]
    split: str = ""
    category: str = ""
    tokens: int | None = None


QuestionOnDocument = tuple[Document, Question]


def document_digest(document: Document) -> str:
    """Return the SHA-256 of all that a retriever may read of a document.

    It also covers the names that the document's results are stored under.
    """
    content = [
        document.source,
        document.doc_id,
        document.split,
        document.title,
        document.text,
    ]
    if document.category:
        content.append(document.category)
    encoded = json.dumps(content).encode("ascii")  # escapes lone surrogates
    return hashlib.sha256(encoded).hexdigest()


def read_documents(
    paths: Iterable[Path],
    on_bad: Callable[[DataError], object] | None = None,
    *,
    distinct: bool = False,
) -> Iterator[Document]:
    """Yield documents of ``.jsonl`` or ``.jsonl.gz`` files, one at a time, in order.

    Parameters
    ----------
    paths : iterable of Path
        The files.
    on_bad : callable, optional
        Gets the error of every bad line; the line is left out, as is the rest of a
        damaged ``.gz`` file. Default: `DataError` for a bad line.
    distinct : bool, default False
        It is also an error if source, ``doc_id`` and ``qid`` occur together again,
        since results are stored by them and only one would count, or if a source is
        "macro" or "micro".
    """
    question_places: dict[tuple[str, str, str], str] = {}
    for path in paths:
        _check_is_file(path)
        lines = numbered_lines(path)
        while True:
            try:
                number, line = next(lines)
                if line.strip():
                    location = f"{path}, line {number}"
                    document = _document(line, location)
                    if distinct:
                        refuse_names_of_means([document.source], location)
                        _note_questions(document, location, question_places)
                    yield document
            except StopIteration:  # at the end, or after a damaged part
                break
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(error)


def _check_is_file(path: Path) -> None:
    if path.is_dir() or not path.exists():
        got = "a folder" if path.is_dir() else "no such file"
        raise FileNotFoundError(
            f"{path}: {got}; expected a file of questions, .jsonl or .jsonl.gz:"
            " check the path; docs/evaluation.md shows the format, and"
            " examples/data/questions.jsonl is one"
        )


def _note_questions(
    document: Document, location: str, question_places: dict[tuple[str, str, str], str]
) -> None:
    """Note where each question is.

    If one was noted before, note none of them and raise `DataError`.
    """
    new_places: dict[tuple[str, str, str], str] = {}
    for question in document.questions:
        key = (document.source, document.doc_id, question.qid)
        first = question_places.get(key) or new_places.get(key)
        if first:
            raise DataError(
                f"{location}: got question {question.qid!r:.80} of document"
                f" {document.doc_id!r:.80} of source {document.source!r:.80} again,"
                f" first in {first}; expected each once: give each file once, and each"
                " document an id of its own in its source"
            )
        new_places[key] = location
    question_places.update(new_places)


def refuse_names_of_means(sources: Iterable[str], location: str) -> None:
    """Raise `DataError` for a source that has the name of a mean over sources.

    ``location`` starts the message.
    """
    for source in sources:
        if source in MEANS:
            raise DataError(
                f"{location}: got the source {source!r}, the name of a mean over"
                " sources in results; expected another name: rename the source"
            )


def _document(line: bytes, location: str) -> Document:
    with expecting("one JSON object", location):
        record = parse_object(line.decode("utf-8"))
    text = _string(record, "text", location)
    records: Any = record.get("questions")
    are_objects = isinstance(records, list) and _are_all(records, dict)
    require(are_objects, "'questions' to be a list of objects", records, location)
    return Document(
        doc_id=_string(record, "doc_id", location),
        source=_name(record, "source", location),
        title=str(record.get("title") or ""),
        text=text,
        questions=tuple(_question(item, len(text), location) for item in records),
        split=_name(record, "split", location),
        category=_name(record, "category", location),
        tokens=_tokens(record, location),
    )


def _question(record: dict[str, Any], characters: int, location: str) -> Question:
    qid = _string(record, "qid", location)
    location = f"{location}, question {qid}"
    evidence = _evidence(record, characters, location)
    answers = _strings(record, "answers", location)
    choices = _strings(record, "choices", location)
    are_choices = not choices or set(answers) <= set(choices)
    require(are_choices, "each answer among the choices", answers, location)
    are_few = len(choices) <= MOST_CHOICES
    require(are_few, f"at most {MOST_CHOICES} choices", len(choices), location)
    form = record.get("answer_form") or ""
    forms = f"an answer_form of {', '.join(ANSWER_FORMS)}"
    require(form in ("", *ANSWER_FORMS), forms, form, location)
    return Question(
        qid=qid,
        text=_string(record, "question", location),
        evidence=evidence,
        answerable=record.get("answerable", True) is not False,
        ambiguous=record.get("evidence_ambiguous", False) is True,
        answers=answers,
        choices=choices,
        answer_form=form,
        multiple_choice=record.get("multiple_choice", False) is True,
    )


def _evidence(
    record: dict[str, Any], characters: int, location: str
) -> tuple[tuple[int, int], ...]:
    """Return the spans of a question, each inside a text of so many characters."""
    spans = record.get("evidence", [])
    is_list = isinstance(spans, list)
    require(is_list, "'evidence' to be a list of [start, end]", spans, location)
    expected = (
        f"[start, end] with 0 <= start < end <= {characters}, the length of the text"
    )
    evidence = []
    for span in spans:
        is_pair = isinstance(span, list) and len(span) == 2 and _are_all(span, int)
        is_inside = is_pair and 0 <= span[0] < span[1] <= characters
        require(is_inside, expected, span, location)
        evidence.append((span[0], span[1]))
    return tuple(evidence)


def _are_all(values: Iterable[object], kind: type) -> bool:
    """Whether all values are of exactly this type, so that True is no number."""
    return all(type(value) is kind for value in values)


def _name(record: dict[str, Any], key: str, location: str) -> str:
    """Return a name that results contain, so UTF-8 must be able to hold it."""
    name = str(record.get(key) or "")
    is_encodable = not re.search(r"[\ud800-\udfff]", name)
    require(is_encodable, f"text that UTF-8 can hold under {key!r}", name, location)
    return name


def _tokens(record: dict[str, Any], location: str) -> int | None:
    tokens = record.get("tokens")
    is_count = tokens is None or (type(tokens) is int and tokens >= 0)
    require(is_count, "a number of tokens under 'tokens'", tokens, location)
    return tokens


def _strings(record: dict[str, Any], key: str, location: str) -> tuple[str, ...]:
    values = record.get(key, [])
    are_strings = isinstance(values, list) and _are_all(values, str)
    require(are_strings, f"{key!r} to be a list of strings", values, location)
    return tuple(values)


def _string(record: dict[str, Any], key: str, location: str) -> str:
    value = record.get(key)
    require(isinstance(value, str), f"a string under {key!r}", value, location)
    return str(value)
