r"""Question-answering files: each line is a document with questions and the character spans that answer them.

    {"doc_id": str, "source": str, "split": str, "title": str, "text": str,
     "questions": [{"qid": str, "question": str, "evidence": [[start, end], ...]}]}

A question may also have ``answers`` (right answers in words), ``answer_form`` (how long
they are, one of `ANSWER_FORMS`), ``choices`` (of a multiple-choice question; its
answers are among them), ``answerable`` (false if the document does not answer it) and
``evidence_ambiguous`` (true if the answer's text occurs more than once, so the span may
be the wrong place). Other keys are ignored.

The rule of ``--max-questions N --seed S``: the answerable questions with evidence of
every source are sorted by the SHA-256 of ``"{S}\n{doc_id}\n{qid}"`` (UTF-8, as
hexadecimal digits), and the first N are asked. The order does not depend on files, on
other questions or on Python's hash seed; a larger sample contains the smaller one.
"""

import csv
import gzip
import hashlib
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from spscanner_rag.system.strict_json import parse_json, parse_object

ANSWER_FORMS = ("phrase", "sentence", "paragraph")

MOST_CHOICES = 26  # options of a multiple-choice question, which letters name

QUESTIONS, TEXTS = (
    "questions_df.csv",
    "corpora",
)  # in a folder of Chroma's chunking evaluation

MEANS = frozenset({"macro", "micro"})
"""Names of means over sources in results, which no source may have."""

MOST_EXPANSION, LEAST_LIMIT = 100, 2**27
"""A compressed file may expand to this many times its size, and in any case to this
many bytes. Text expands three to ten times; a file beyond these limits was made to
fill the memory."""


class DataError(ValueError):
    """A bad line of a data file; the message names file, line and reason."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a document, the character spans that answer it, and right answers in words."""

    qid: str
    text: str
    evidence: tuple[tuple[int, int], ...]
    answerable: bool = True
    ambiguous: bool = False
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    answer_form: str = ""  # how long an answer should be; "" if the data do not say


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its questions."""

    doc_id: str
    source: str
    title: str
    text: str
    questions: tuple[Question, ...]
    split: str = ""


Asked = tuple[Document, Question]


def document_digest(document: Document) -> str:
    """SHA-256 of all that a retriever may read of a document, and of the names that its results are kept under."""
    content = [
        document.source,
        document.doc_id,
        document.split,
        document.title,
        document.text,
    ]
    return hashlib.sha256(
        json.dumps(content).encode("ascii")
    ).hexdigest()  # escapes lone surrogates


def read_documents(
    paths: Iterable[Path],
    on_bad: Callable[[DataError], object] | None = None,
    *,
    distinct: bool = False,
) -> Iterator[Document]:
    """Documents of ``.jsonl`` or ``.jsonl.gz`` files, one at a time, in order.

    `DataError` for a bad line.

    If ``on_bad`` is given, it gets the error of every bad line, and the line is left
    out, as is the rest of a damaged ``.gz`` file. With ``distinct`` it is also an error
    if source, ``doc_id`` and ``qid`` occur together again, since results are kept by
    them and only one would count, or if a source is "macro" or "micro".
    """
    places: dict[tuple[str, str, str], str] = {}
    for path in paths:
        if path.is_dir() or not path.exists():
            got = "a folder" if path.is_dir() else "no such file"
            raise FileNotFoundError(
                f"{path}: {got}; expected a file of questions, .jsonl or .jsonl.gz:"
                " check the path; docs/evaluation.md shows the format, and"
                " examples/data/questions.jsonl is one"
            )
        lines = numbered_lines(path)
        while True:
            try:
                number, line = next(lines)
                if line.strip():
                    document = _document(line, where := f"{path}, line {number}")
                    if distinct:
                        refuse_names_of_means([document.source], where)
                        _note_questions(document, where, places)
                    yield document
            except StopIteration:  # at the end, or after a damaged part
                break
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(error)


def _note_questions(
    document: Document, where: str, places: dict[tuple[str, str, str], str]
) -> None:
    """Note where each question is.

    If one was noted before, note none of them and raise `DataError`.
    """
    own: dict[tuple[str, str, str], str] = {}
    for question in document.questions:
        key = (document.source, document.doc_id, question.qid)
        if first := places.get(key) or own.get(key):
            raise DataError(
                f"{where}: got question {question.qid!r:.80} of document"
                f" {document.doc_id!r:.80} of source {document.source!r:.80} again,"
                f" first in {first}; expected each once: give each file once, and each"
                " document an id of its own in its source"
            )
        own[key] = where
    places.update(own)


def refuse_names_of_means(sources: Iterable[str], where: str) -> None:
    """Raise `DataError` for a source that has the name of a mean over sources.

    ``where`` starts the message.
    """
    for source in sources:
        if source in MEANS:
            raise DataError(
                f"{where}: got the source {source!r}, the name of a mean over sources"
                " in results; expected another name: rename the source"
            )


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a file, plain, ``.gz`` or ``.xz``.

    `DataError` if damaged or beyond `MOST_EXPANSION`.
    """
    number = 0
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    is_compressed = path.suffix in openers
    with openers.get(path.suffix, open)(path, "rb") as file:
        try:
            for number, line in enumerate(
                _bounded(file, path) if is_compressed else file, 1
            ):
                yield number, line
        except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
            raise DataError(
                f"{path}, line {number + 1}: expected a complete {path.suffix} file,"
                f" got {error}"
            ) from None


def json_objects(path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and JSON object of each line that is not blank.

    `DataError` for any other value.
    """
    for number, line in numbered_lines(path):
        if line.strip():
            with expecting(expected, f"{path}, line {number}"):
                record = parse_object(line)
            yield number, record


@contextmanager
def expecting(expected: str, where: str) -> Iterator[None]:
    """Turn an error in reading into a `DataError` that says where it is and what was expected."""
    try:
        yield
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{where}: expected {expected}, got {error}") from None


def require(fits: object, expected: str, got: object, where: str) -> None:
    """Raise `DataError` unless ``fits`` is true."""
    if not fits:
        raise DataError(f"{where}: expected {expected}, got {got!r:.60}")


def _bounded(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a compressed file, never reading more than the limit."""
    size = path.stat().st_size
    left = most = max(LEAST_LIMIT, MOST_EXPANSION * size)
    while line := file.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise DataError(
                f"{path}: got a compressed file of {size:,} bytes that expands to more"
                f" than {most:,}; expected text, which shrinks far less: if you trust"
                " the file, decompress it and give the result"
            )
        yield line


def _document(line: bytes, where: str) -> Document:
    with expecting("one JSON object", where):
        record = parse_object(line.decode("utf-8"))
    text = _string(record, "text", where)
    questions: Any = record.get("questions")
    are_objects = isinstance(questions, list) and all(
        isinstance(question, dict) for question in questions
    )
    require(are_objects, "'questions' to be a list of objects", questions, where)
    return Document(
        doc_id=_string(record, "doc_id", where),
        source=_name(record, "source", where),
        title=str(record.get("title") or ""),
        text=text,
        questions=tuple(
            _question(question, len(text), where) for question in questions
        ),
        split=_name(record, "split", where),
    )


def _question(record: dict[str, Any], characters: int, where: str) -> Question:
    qid = _string(record, "qid", where)
    where = f"{where}, question {qid}"
    evidence, form = record.get("evidence", []), record.get("answer_form") or ""
    require(
        isinstance(evidence, list),
        "'evidence' to be a list of [start, end]",
        evidence,
        where,
    )
    for span in evidence:
        is_pair = (
            isinstance(span, list)
            and len(span) == 2
            and all(type(offset) is int for offset in span)
        )
        inside = is_pair and 0 <= span[0] < span[1] <= characters
        expected = (
            f"[start, end] with 0 <= start < end <= {characters}, the length of the"
            " text"
        )
        require(inside, expected, span, where)
    answers, choices = (_strings(record, key, where) for key in ("answers", "choices"))
    require(
        not choices or set(answers) <= set(choices),
        "each answer among the choices",
        answers,
        where,
    )
    require(
        len(choices) <= MOST_CHOICES,
        f"at most {MOST_CHOICES} choices",
        len(choices),
        where,
    )
    require(
        form in ("", *ANSWER_FORMS),
        f"an answer_form of {', '.join(ANSWER_FORMS)}",
        form,
        where,
    )
    return Question(
        qid=qid,
        text=_string(record, "question", where),
        evidence=tuple((start, end) for start, end in evidence),
        answerable=record.get("answerable", True) is not False,
        ambiguous=record.get("evidence_ambiguous", False) is True,
        answers=answers,
        choices=choices,
        answer_form=form,
    )


def _name(record: dict[str, Any], key: str, where: str) -> str:
    """A name that results contain, so UTF-8 must be able to hold it."""
    name = str(record.get(key) or "")
    require(
        not re.search(r"[\ud800-\udfff]", name),
        f"text that UTF-8 can hold under {key!r}",
        name,
        where,
    )
    return name


def _strings(record: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = record.get(key, [])
    are_strings = isinstance(values, list) and all(
        isinstance(value, str) for value in values
    )
    require(are_strings, f"{key!r} to be a list of strings", values, where)
    return tuple(values)


def _string(record: dict[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    require(isinstance(value, str), f"a string under {key!r}", value, where)
    return str(value)


def sample_questions(
    documents: Iterable[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    answerable: bool = True,
    answered: bool = False,
) -> dict[str, list[Asked]]:
    """Up to ``per_source`` questions with evidence from each source, by the rule above, with their documents.

    ``answerable=False`` samples the questions that their document does not answer;
    ``answered`` includes those that have right answers, but no evidence.
    """
    found: dict[str, list[Asked]] = {}
    for document in documents:
        for question in document.questions:
            known = question.evidence or (
                answered and any(map(str.strip, question.answers))
            )
            if known and question.answerable if answerable else not question.answerable:
                found.setdefault(document.source, []).append((document, question))

    def place(asked: Asked) -> tuple[str, str, tuple[tuple[int, int], ...]]:
        document, question = asked
        key = f"{seed}\n{document.doc_id}\n{question.qid}".encode("utf-8", "replace")
        # text and evidence break the tie where a file gives two questions the same id
        return hashlib.sha256(key).hexdigest(), question.text, question.evidence

    return {
        source: sorted(pairs, key=place)[:per_source]
        for source, pairs in sorted(found.items())
    }


def by_document(pairs: Iterable[Asked]) -> Iterator[tuple[Document, list[Question]]]:
    """Group pairs by document, so that each document is cut and read once."""
    documents: dict[int, tuple[Document, list[Question]]] = {}
    for document, question in pairs:
        documents.setdefault(id(document), (document, []))[1].append(question)
    yield from documents.values()


def is_held_out(doc_id: str) -> bool:
    """Whether a document is in the tenth that training leaves out: the SHA-1 of its id ends in a decimal 0."""
    digest = hashlib.sha1(
        doc_id.encode("utf-8", "replace"), usedforsecurity=False
    ).hexdigest()
    return int(digest, 16) % 10 == 0


def is_chunking(folder: Path) -> bool:
    """Whether a path is a folder of Chroma's chunking evaluation, github.com/brandonstarxel/chunking_evaluation.

    Its questions, with exact spans in a few texts, are asked of all texts together
    (Smith and Troynikov, 2024).
    """
    return (folder / QUESTIONS).is_file() and (folder / TEXTS).is_dir()


def read_chunking(folder: Path) -> list[Document]:
    """Read ``questions_df.csv`` (question, references, corpus_id) and ``corpora/ID.md`` or ``.txt``.

    `DataError` for a row that names no text, or whose quotation is not at the place it
    gives.
    """
    paths = {
        path.stem: path
        for path in (folder / TEXTS).iterdir()
        if path.suffix in (".md", ".txt")
    }
    texts = {
        name: path.read_text(encoding="utf-8") for name, path in sorted(paths.items())
    }
    asked: dict[str, list[Question]] = {name: [] for name in texts}
    with (folder / QUESTIONS).open(encoding="utf-8", newline="") as file:
        try:
            for number, row in enumerate(csv.DictReader(file), 1):
                where = f"{folder / QUESTIONS}, row {number}"
                name = row.get("corpus_id") or ""
                known = name in texts and (row.get("question") or "").strip()
                names = ", ".join(texts) or "the texts, of which there are none"
                require(known, f"a question, and a corpus_id of {names}", name, where)
                spans = _spans(row, texts[name], where)
                asked[name].append(Question(f"row-{number}", row["question"], spans))
        except csv.Error as error:
            raise DataError(
                f"{folder / QUESTIONS}: expected CSV, got {error}"
            ) from None
    return [
        Document(name, folder.name, "", text, tuple(asked[name]))
        for name, text in texts.items()
    ]


def _spans(
    row: Mapping[str, str], text: str, where: str
) -> tuple[tuple[int, int], ...]:
    with expecting("references, a JSON list of content, start_index, end_index", where):
        references: Any = parse_json(row.get("references") or "")
        quoted = [
            (int(each["start_index"]), int(each["end_index"]), each["content"])
            for each in references
        ]
    for start, end, content in quoted:
        is_there = 0 <= start < end and text[start:end] == content
        expected = (
            f"{content!r:.60} at characters {start} to {end} (are questions and texts"
            " of one version?)"
        )
        require(is_there, expected, text[max(start, 0) : end], where)
    require(quoted, "at least one reference", quoted, where)
    return tuple((start, end) for start, end, _ in quoted)
