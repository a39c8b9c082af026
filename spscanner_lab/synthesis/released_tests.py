"""Converts the test files that the paper's authors released to question files.

A test file is one JSON object of benchmarks, or of categories. Its records have
``question``, ``answer`` (a list of right answers), ``answer_type`` ("sentence" or
"paragraph"), ``full_text_sentences`` (strings that, joined, are the document) and
``input_ids`` (question and document as tokens), and no labels. The licence of the data
forbids redistribution.

The real file has some 400 million tokens, so it is read record by record. Each distinct
text waits in a temporary file until its questions are known.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from spscanner_lab.evidence.data_lines import DataError, require
from spscanner_lab.evidence.json_stream import JsonError, JsonStream, TooLongError
from spscanner_lab.evidence.questions import ANSWER_FORMS

MOST_NAMES = 3  # category, benchmark and record

MOST_CHARACTERS = 50_000_000
"""Characters of the longest document, some 11 million tokens."""

MOST_ANSWER_CHARACTERS = 1_000_000

MULTIPLE_CHOICE = frozenset(
    {
        "coursera",
        "longbook_choice_eng",
        "meetingqa_16k",
        "meetingqa_4k",
        "muld_CAC",
        "paperqa_16k",
        "paperqa_4k",
        "quality",
        "tpo",
    }
)
"""Benchmarks of multiple-choice questions, by the authors' ``rag_pipeline``.

Their records do not list the options.
"""

NO_CATEGORY = "other"
"""The category of a record whose category nobody names."""

OnBad = Callable[[DataError], object]

_LONG_FIELDS = ("input_ids", "sentence_indices")
_SHORT_FIELDS = ("question", "answer", "answer_type")
_FIELDS = frozenset({*_LONG_FIELDS, *_SHORT_FIELDS, "full_text_sentences"})

Names = tuple[str, ...]


class _Place(NamedTuple):
    """Where a text waits in the temporary file, in bytes, and its tokens, if known."""

    start: int
    length: int
    tokens: int | None


@dataclass
class _WaitingDocument:
    """A document whose text is in the temporary file, with its questions."""

    names: Names  # of its first record
    category: str
    text: _Place
    questions: list[dict[str, Any]] = field(default_factory=list)

    def line(self, text: str) -> dict[str, Any]:
        """The document as a line of a question file."""
        line: dict[str, Any] = {
            "doc_id": "/".join(self.names),
            "source": self.names[0],
            "split": "test",
            "title": "",
            "text": text,
            "questions": self.questions,
        }
        if self.text.tokens is not None:
            line["tokens"] = self.text.tokens
        if self.category:
            line["category"] = self.category
        return line


def read_released_tests(
    path: Path,
    categories: Mapping[Names, str] | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the documents of a released test file as lines of a question file.

    They have answers and no evidence. A line's source is the outermost name, a
    benchmark's or a category's. Questions of a source on the same text are on one
    line, whose ``doc_id`` is made of all names on the path to the first record.

    Parameters
    ----------
    path : Path
        The file; of any size, since memory holds one document at a time.
    categories : mapping, optional
        The categories of records, as `read_categories` returns them; a record without
        one has `NO_CATEGORY`. Default: lines have no category.
    on_bad : callable, optional
        Gets the error of every bad record, which is left out. A file that is cut ends
        before the record that the error names. Default: `DataError` is raised.
    """
    documents: dict[tuple[str, str, bytes], _WaitingDocument] = {}
    places: dict[bytes, _Place] = {}
    seen: set[Names] = set()
    with tempfile.TemporaryFile() as texts:
        for names, record in _records_of(path, on_bad):
            location = f"{path}, record {'/'.join(names)!r:.80}"
            with _told(on_bad):
                _check_record(record, location)
                require(names not in seen, "each name once", names[-1], location)
                seen.add(names)
                text = "".join(record["full_text_sentences"])
                encoded = text.encode("utf-8", "surrogatepass")
                digest = hashlib.sha256(encoded).digest()
                if digest not in places:
                    place = _Place(texts.tell(), len(encoded), _tokens(record))
                    texts.write(encoded)
                    places[digest] = place
                category = _category(names, categories)
                key = (names[0], category, digest)
                waiting = _WaitingDocument(names, category, places[digest])
                document = documents.setdefault(key, waiting)
                document.questions.append(_question(names, record))
        for document in documents.values():
            texts.seek(document.text.start)
            encoded = texts.read(document.text.length)
            yield document.line(encoded.decode("utf-8", "surrogatepass"))


def read_categories(path: Path) -> dict[Names, str]:
    """Return the categories of the records of the released file of categories.

    Keys are the names below a category: a record's, or its benchmark's and its own.
    `DataError` if the file is no such file.
    """
    categories = {}
    for names, _ in _records_of(path, None):
        categories[names[1:]] = names[0]
    return categories


def _category(names: Names, categories: Mapping[Names, str] | None) -> str:
    """Return the category of a record, "" if nobody has categories."""
    if categories is None:
        return ""
    return categories.get(names) or categories.get(names[-1:], NO_CATEGORY)


def _question(names: Names, record: Mapping[str, Any]) -> dict[str, Any]:
    question = {
        "qid": "/".join(names),
        "question": record["question"],
        "answers": list(map(str, _answers(record))),
    }
    if record.get("answer_type"):
        question["answer_form"] = record["answer_type"]
    if MULTIPLE_CHOICE.intersection(names[:-1]):
        question["multiple_choice"] = True
    return question


def _tokens(record: Mapping[str, Any]) -> int | None:
    """Return the tokens of a record, None if there are fewer than sentences."""
    tokens: int = record.get("input_ids", 0)
    return tokens if tokens >= len(record["full_text_sentences"]) else None


def _answers(record: Mapping[str, Any]) -> list[object]:
    answer = record["answer"]
    return answer if isinstance(answer, list) else [answer]


@contextmanager
def _told(on_bad: OnBad | None) -> Iterator[None]:
    """Give a `DataError` to ``on_bad``, if there is one, and go on after it."""
    try:
        yield
    except DataError as error:
        if on_bad is None:
            raise
        on_bad(error)


def _records_of(
    path: Path, on_bad: OnBad | None
) -> Iterator[tuple[Names, dict[str, Any]]]:
    """Yield the records of a file, with the names on the path to each."""
    walk = _Walk(path, on_bad)
    with _told(on_bad), path.open(encoding="utf-8") as file:
        yield from walk.records(file)


class _Walk:
    """A walk through the records of a test file."""

    def __init__(self, path: Path, on_bad: OnBad | None) -> None:
        self.path = path
        self.on_bad = on_bad
        self.names: Names = ()  # on the path to what is being read

    def records(self, file: IO[str]) -> Iterator[tuple[Names, dict[str, Any]]]:
        """Yield names and fields of each record.

        ``input_ids`` is the number of tokens. `DataError` where the file ends too
        early, or is not JSON.
        """
        stream = JsonStream(file)
        try:
            yield from self._within(stream, ())
            if stream.peek():
                raise JsonError("more after the end")
        except (JsonError, UnicodeDecodeError) as error:
            place = "/".join(self.names) or "the beginning"
            raise DataError(
                f"{self.path}: expected one JSON object of benchmarks or categories;"
                f" the file is cut or damaged at record {place!r:.80}: {error}"
            ) from None

    def _within(
        self, stream: JsonStream, names: Names
    ) -> Iterator[tuple[Names, dict[str, Any]]]:
        """Yield the records in what comes next."""
        self.names = names
        first = stream.peek()
        parts: Iterable[object] = ()
        if first == "{":
            parts = stream.keys()
        elif first == "[" and len(names) < MOST_NAMES:
            parts = stream.items()
        else:
            self._refuse(stream, names)
        for number, part in enumerate(parts):
            if number == 0 and first == "{" and names and _begins_record(stream, part):
                yield names, _fields(stream, str(part), parts)
                return
            self.names = (*names, str(part))
            if len(names) < MOST_NAMES:
                yield from self._within(stream, self.names)
            else:
                self._refuse(stream, names)

    def _refuse(self, stream: JsonStream, names: Names) -> None:
        """Say that what comes next is no record, and pass over it."""
        kinds = {"{": "dict", "[": "list", '"': "str"}
        got = kinds.get(stream.peek(), "a plain value")
        stream.skip()
        with _told(self.on_bad):
            location = "/".join(names) or "the file"
            raise DataError(
                f"{self.path}: got {got} at {location!r:.80}; expected objects of"
                " benchmarks or categories, and in them records with"
                " full_text_sentences"
            )


def _begins_record(stream: JsonStream, key: object) -> bool:
    """Whether an object is a record, by its first key and what follows."""
    return key in _FIELDS or stream.peek() not in ("{", "[")


def _fields(stream: JsonStream, first: str, others: Iterable[object]) -> dict[str, Any]:
    """Return the fields of a record that are used, and how many tokens it has.

    A field that is too long is left out.
    """
    record: dict[str, Any] = {}
    _read_field(stream, first, record)
    for key in others:
        _read_field(stream, str(key), record)
    return record


def _read_field(stream: JsonStream, key: str, record: dict[str, Any]) -> None:
    try:
        if key in _SHORT_FIELDS:
            record[key] = stream.value(MOST_ANSWER_CHARACTERS)
        elif key == "full_text_sentences" and stream.peek() == "[":
            record[key] = _sentences(stream)
        elif key in _FIELDS:
            record[key] = stream.skip()
        else:
            stream.skip()
    except TooLongError:
        stream.skip()


def _sentences(stream: JsonStream) -> list[object] | None:
    """Return the sentences of a document, None if it is too long."""
    sentences: list[object] | None = []
    characters = 0
    for _ in stream.items():
        if sentences is None or stream.peek() != '"':
            stream.skip()
            sentences = None
            continue
        sentence = stream.value()
        characters += len(sentence)
        sentences.append(sentence)
        if characters > MOST_CHARACTERS:
            sentences = None
    return sentences


def _check_record(record: Mapping[str, Any], location: str) -> None:
    """Raise `DataError` for a record that lacks what a question file needs."""
    question = record.get("question")
    is_question = isinstance(question, str) and question.strip() and "answer" in record
    sentences = record.get("full_text_sentences")
    is_complete = is_question and isinstance(sentences, list)
    expected = (
        "a question, an answer and a list of strings, together at most"
        f" {MOST_CHARACTERS:,} characters, under full_text_sentences"
    )
    require(is_complete, expected, ", ".join(record) or "nothing", location)
    answers = _answers(record)
    are_plain = all(isinstance(answer, str | int | float) for answer in answers)
    require(are_plain, "answers in words or numbers", answers, location)
    form = record.get("answer_type") or ""
    forms = f"an answer_type of {', '.join(ANSWER_FORMS)}"
    require(form in ("", *ANSWER_FORMS), forms, form, location)
