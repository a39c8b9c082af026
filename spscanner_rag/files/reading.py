"""Reads documents from files of several kinds, and from folders."""

import os
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from spscanner_rag.files.apart import Record, read_apart, seconds_for
from spscanner_rag.files.documents import STANDARD_INPUT, TextFile, block_of, name_of
from spscanner_rag.files.readers import plain_text
from spscanner_rag.files.readers.docx import archive_of, read_docx
from spscanner_rag.files.readers.html import read_html
from spscanner_rag.files.readers.pdf import read_pdf
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import Block

Kind = Literal["text", "Markdown", "HTML", "PDF", "DOCX", "CSV", "subtitles", "log"]


class Format(NamedTuple):
    """How files of a kind are read."""

    endings: str
    most_bytes: int
    read: Callable[[bytes], TextFile]
    keeps_text: bool = False  # whether the text is the file's own, unchanged


_MIB = 2**20
FORMATS: dict[Kind, Format] = {  # a reader imports its library on first use
    "text": Format(".txt .text", 256 * _MIB, plain_text.read_text, keeps_text=True),
    "Markdown": Format(
        ".md .markdown", 32 * _MIB, plain_text.read_markdown, keeps_text=True
    ),
    "HTML": Format(".html .htm .xhtml", 32 * _MIB, read_html),
    "PDF": Format(".pdf", 256 * _MIB, read_pdf),
    "DOCX": Format(".docx", 256 * _MIB, read_docx),
    "CSV": Format(".csv .tsv", 64 * _MIB, plain_text.read_table, keeps_text=True),
    "subtitles": Format(".vtt .srt", 64 * _MIB, plain_text.read_subtitles),
    "log": Format(".log", 64 * _MIB, plain_text.read_log, keeps_text=True),
}
KINDS = {
    ending: kind for kind, form in FORMATS.items() for ending in form.endings.split()
}
"""Kinds by ending. In a folder, only files with these endings are read."""

_BLOCKS_OF_RECORD = 10_000

AT_ONCE_BYTES = 2**18
"""Files that are larger, unpacked, are read in a separate process, whose start takes
longer than a small file."""

_BEGINNINGS = {
    b"\xd0\xcf\x11\xe0": "an old or an encrypted Office file",
    b"{\\rtf": "RTF",
}


def read(
    path: str | Path,
    *,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TextFile:
    """Read a document from a file: plain text, Markdown, HTML, PDF or DOCX.

    Parameters
    ----------
    path
        The file; ``-`` is standard input. Its kind is known by its ending, or else by
        its first bytes.
    seconds
        Time limit for reading a PDF or a large file; None: by its size. When it ends,
        the pages read so far are returned, with a note.
    progress
        For a PDF, called with the number of pages read and the number of all pages.

    Returns
    -------
    TextFile
        Its text, and the positions of pages, headings, list items, fences and table
        rows. Its methods take offsets in ``text``: ``document.page(start)``,
        ``document.headings(start)``.

    Raises
    ------
    ImportError, ValueError
        If the package that reads this kind is missing; if the file cannot be read, is
        of another kind than its ending says, or is broken, encrypted, without text or
        too large.
    """
    path = str(path)
    return read_bytes(path, bytes_of(path), seconds=seconds, progress=progress)


def read_bytes(
    path: str,
    data: bytes,
    *,
    seconds: float | None = None,
    check: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TextFile:
    """Read a document from the content of a file; ``path`` is its name.

    Otherwise as `read`.

    ``check`` is called while a PDF or a large file is read, and may raise an exception
    to stop reading.
    """
    try:
        kind = _kind_of(path, data)
        if len(data) > FORMATS[kind].most_bytes:
            raise _too_large(len(data), kind)
        if not data or data.isspace():
            raise _empty(bool(data), "text")
        if seconds is None:
            seconds = seconds_for(data)
        if kind == "PDF":
            made = read_pdf(data, seconds, check, progress)
        elif _unpacked(kind, data) > AT_ONCE_BYTES:
            made = _read_apart(kind, data, seconds, check)
        else:
            made = FORMATS[kind].read(data)
        if not made.text or made.text.isspace():
            raise _empty(bool(made.text), kind)
    except (ImportError, ValueError) as error:
        refusal = ImportError if isinstance(error, ImportError) else ValueError
        raise refusal(f"{name_of(path)}: {error}") from error.__cause__
    return replace(made, path=path)


def _unpacked(kind: Kind, data: bytes) -> int:
    if kind == "DOCX":
        return sum(part.file_size for part in archive_of(data).infolist())
    return len(data) * (
        4 if kind == "Markdown" else 1
    )  # its parser needs 500 bytes per short line


def _read_apart(
    kind: Kind, data: bytes, seconds: float, check: Callable[[], None] | None
) -> TextFile:
    blocks: list[Block] = []
    whole: Record | None = None
    for record in read_apart(_records, data, seconds, check, kind):
        if "refused" in record:
            raise (ImportError if record["missing"] else ValueError)(record["refused"])
        blocks += map(block_of, record.get("blocks", ()))
        whole = record
    if whole is None or "text" not in whole:
        raise ValueError(
            f"got {kind} that takes more than {seconds:.0f} seconds, or too much"
            " memory; expected less: split it"
        )
    text = decoded(data) if whole["text"] is None else whole["text"]
    return TextFile("", text, tuple(blocks))


def _records(data: bytes, kind: Kind) -> Iterator[Record]:
    """Run in the separate process: yield the blocks of a document, then its text."""
    try:
        made = FORMATS[kind].read(data)
    except (ValueError, ImportError) as error:
        yield {"refused": str(error), "missing": isinstance(error, ImportError)}
        return
    for start in range(0, len(made.blocks), _BLOCKS_OF_RECORD):
        yield {"blocks": made.blocks[start : start + _BLOCKS_OF_RECORD]}
    yield {"text": None if FORMATS[kind].keeps_text else made.text}


def read_all(
    paths: Sequence[str],
    warn: Callable[[str], None],
    read: Callable[[str], TextFile] = read,
) -> list[TextFile]:
    """Read files, and from folders, in order of name, all files with a known ending that are not hidden.

    ``warn`` gets a line about each file in a folder, or part of a file, that could not
    be read. ``read`` may be another function, such as one with a cache. Raises as
    `read` for a file that was named, and ``ValueError`` for a folder in which nothing
    can be read.
    """
    if list(paths).count(STANDARD_INPUT) > 1:
        raise ValueError(
            "-: got standard input more than once; expected it once: give a single -"
        )
    found: list[TextFile] = []
    for path in paths:
        if path != STANDARD_INPUT and os.path.isdir(path):
            found += _read_folder(path, warn, read)
        else:
            found.append(read(path))
    for document in found:
        for note in document.notes:
            warn(f"{name_of(document.path)}: {note}")
    return found


def _read_folder(
    folder: str, warn: Callable[[str], None], read: Callable[[str], TextFile]
) -> list[TextFile]:
    known, others, notes = regular_files(folder, tuple(KINDS))
    documents: list[TextFile] = []
    errors: list[str] = []
    for path in known:
        try:
            documents.append(read(path))
        except (ValueError, ImportError) as error:
            errors.append(str(error))
    if not documents:
        why = errors[0] if errors else f"no file in it ends in {', '.join(KINDS)}"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ValueError(
            f"{folder}: got a folder in which nothing can be read: {why}{more}"
        )
    for note in (*notes, *(f"left out: {reason}" for reason in errors)):
        warn(note)
    if others:
        endings = sorted({Path(path).suffix or "none" for path in others})
        shown = ", ".join(endings[:5]) + (", ..." if len(endings) > 5 else "")
        warn(f"{folder}: left out {len(others):,} files with other endings ({shown})")
    return documents


def regular_files(
    folder: str, endings: tuple[str, ...]
) -> tuple[list[str], list[str], list[str]]:
    """List the files below a folder with these endings, the other files, both without hidden ones, and notes.

    The notes name pipes, devices and the like with such an ending, which are left out
    because they are not regular files, and links that lead out of the folder. Files are
    in order of name.
    """
    root = os.path.join(os.path.realpath(folder), "")
    found: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            os.path.join(parent, name)
            for name in sorted(names)
            if not name.startswith(".")
        ]
    named = [path for path in found if path.lower().endswith(endings)]
    known = [path for path in named if os.path.isfile(path)]
    others = [path for path in found if not path.lower().endswith(endings)]
    notes = []
    kept = set(known)
    if no_files := [path for path in named if path not in kept]:
        notes.append(
            f"left out: {len(no_files):,} that are not regular files, such as"
            f" {no_files[0]}"
        )
    if links := [path for path in known if not os.path.realpath(path).startswith(root)]:
        notes.append(
            f"{folder}: {len(links):,} links lead out of it, such as {links[0]} to"
            f" {os.path.realpath(links[0])}"
        )
    return known, others, notes


def bytes_of(path: str) -> bytes:
    """The content of a file or of standard input.

    ``ValueError`` if it cannot be read or is too large.
    """
    kind = named_kind(path)
    most = (
        FORMATS[kind].most_bytes
        if kind
        else max(form.most_bytes for form in FORMATS.values())
    )
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(most + 1)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return file.read(most + 1)
            size = (
                status.st_size
            )  # 0 for files such as those of /proc, and some of these never end
            data = file.read(size + 1) if 0 < size <= most else b""
    except IsADirectoryError:
        raise ValueError(
            f"{path}: got a folder; expected a file: name the files in it"
        ) from None
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file; expected a document: check the path"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a zero character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"{path}: cannot be read ({reason}); expected a readable file"
        ) from None
    if size > most:
        raise ValueError(f"{path}: {_too_large(size, kind or 'text')}")
    if len(data) != size:
        raise ValueError(
            f"{path}: got another size than the {size:,} bytes it had; expected a file"
            " that does not change while it is read: try again when it is complete"
        )
    return data


def _too_large(size: int, kind: Kind) -> ValueError:
    most = FORMATS[kind].most_bytes / _MIB
    return ValueError(
        f"got {size / _MIB:,.0f} MiB; expected at most {most:.0f} MiB of {kind}:"
        " split it"
    )


def _empty(has_content: bool, kind: Kind) -> ValueError:
    got = "only white space" if has_content else "an empty file"
    if kind in ("HTML", "DOCX", "subtitles"):
        got = f"{kind} without text"
    return ValueError(
        f"got {got}; expected text to scan: check that it is the right file"
    )


def named_kind(path: str) -> Kind | None:
    """The kind of file that the ending of a path stands for; None for other endings."""
    return KINDS.get(PurePath(path).suffix.lower())


def _kind_of(path: str, data: bytes) -> Kind:
    """The kind of a file; ``ValueError`` if there is no reader for it, or if its ending is of another kind."""
    said, seen = named_kind(path), _seen(data)
    if seen == "HTML" and said not in (None, "HTML", "PDF", "DOCX"):
        return said  # its ending decides: the markup is text
    if seen in ("PDF", "DOCX", "HTML"):
        kind: Kind = seen  # type: ignore[assignment]
        if said not in (None, kind):
            right = next(ending for ending, other in KINDS.items() if other == kind)
            raise ValueError(
                f"got {kind}; expected {said}, as its ending says: give it the ending"
                f" {right}"
            )
        return kind
    if seen is not None:
        raise ValueError(
            f"got {seen}; expected text, Markdown, HTML, PDF or DOCX: save it as one of"
            " these"
        )
    if said in ("PDF", "DOCX") and data:
        raise ValueError(
            f"got a file that does not begin as {said} does; expected {said}, as its"
            " ending says: check that it was saved completely, or give it the right"
            " ending"
        )
    return said or "text"


def _seen(data: bytes) -> str | None:
    """The kind of a file by its first bytes, if that is certain.

    None for text and unknown files.
    """
    if b"%PDF-" in data[:1024] and not data.lstrip().startswith(b"<"):
        return "PDF"
    if data.startswith(b"PK\x03\x04"):
        with suppress(zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
            if any(name.startswith("word/") for name in archive_of(data).namelist()):
                return "DOCX"
        return "a ZIP archive that is not a complete DOCX"
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "HTML" if start.startswith((b"<!doctype html", b"<html")) else None
