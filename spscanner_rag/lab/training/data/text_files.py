r"""Files of plain text, one document at a time.

``.txt``, ``.txt.gz`` and ``.txt.xz`` files hold documents separated by a line that holds only ``\x1e``, the
record separator; a file without such a line is one document.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spscanner_rag.lab.evidence.questions import DataError, Document, numbered_lines, read_documents

SEPARATOR = "\x1e"
"""On a line of its own, between two documents."""

TEXT_SUFFIXES = (".txt", ".txt.gz", ".txt.xz")
QUESTION_SUFFIXES = (".jsonl", ".jsonl.gz")


def source_of(path: Path) -> str:
    r"""A file's name without endings; for a question file, often called ``train``, with its folder before it.

    Bytes of the name that are not UTF-8 become escapes, such as ``\udcff``: results could not hold them.
    """
    path = Path(str(path).encode("utf-8", "backslashreplace").decode())
    for suffix in TEXT_SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    for suffix in QUESTION_SUFFIXES:
        if path.name.endswith(suffix):
            return f"{path.parent.name}/{path.name.removesuffix(suffix)}".lstrip("/")
    return path.name


def refuse_other_files(paths: Iterable[Path], suffixes: Sequence[str]) -> None:
    """Raise ``ValueError`` for the first file that does not exist or has none of these suffixes."""
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path}: no such file; expected {' or '.join(suffixes)}")
        if not path.name.endswith(tuple(suffixes)):
            raise ValueError(f"{path}: expected a file that ends in {' or '.join(suffixes)}")


def read_text_documents(paths: Iterable[Path]) -> Iterator[Document]:
    """Documents of plain text files, in order, without questions; documents of white space only are left out.

    A document's source is its file's name without endings; its id is that name and its number. Raises `DataError`
    for text that is not UTF-8 and for a damaged compressed file; names file and line.
    """
    for path in paths:
        source = source_of(path)
        for number, text in enumerate(_texts(path), 1):
            if text.strip():
                yield Document(f"{source}-{number}", source, "", text, ())


def read_texts(path: Path) -> Iterator[Document]:
    """Documents of a file of plain text or of questions, whichever it is."""
    if path.name.endswith(QUESTION_SUFFIXES):
        return read_documents([path])
    return read_text_documents([path])


def sampled_documents(paths: Sequence[Path], characters: int) -> Iterator[Document]:
    """Documents from the start of every file: about ``characters`` in total, divided equally among the files."""
    for path in paths:
        read = 0
        for document in read_texts(path):
            yield document
            read += len(document.text)
            if read >= characters // len(paths):
                break


def content_key(paths: Iterable[Path], *more: str) -> str:
    """The name of a cache made from these files: the same for the same names and content."""
    digest = hashlib.sha256()
    for part in more:
        digest.update(part.encode("utf-8", "replace") + b"\0")
    for path in paths:
        digest.update(path.name.encode("utf-8", "replace") + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _texts(path: Path) -> Iterator[str]:
    lines: list[str] = []
    for number, raw in numbered_lines(path):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}, line {number}: expected UTF-8, got {error}") from None
        if line.rstrip("\r\n") == SEPARATOR:
            yield "".join(lines)
            lines = []
        else:
            lines.append(line)
    yield "".join(lines)
