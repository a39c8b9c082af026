"""Reads documents from files of several formats."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from spscanner_rag.files.apart import Record, read_apart, seconds_for
from spscanner_rag.files.documents import (
    STANDARD_INPUT,
    PlaceStart,
    TextFile,
    block_of,
    name_of,
)
from spscanner_rag.files.formats import FORMATS, FileFormat, format_named_by
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.files.recognition import format_of
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.blocks import Block

Opener = Callable[[str, int], int]
"""Opens the file with a path and some flags, and returns its descriptor."""

_MIB = 2**20
_BLOCKS_OF_RECORD = 10_000

OCR_SECONDS = 1_200.0
"""Time limit for a file whose pages may be recognized: some 300 pages, each of which
takes seconds."""

AT_ONCE_BYTES = 2**18
"""Files that are larger, unpacked, are read in a separate process, whose start takes
longer than a small file."""


def read(
    path: str | Path,
    *,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    ocr: str = "",
) -> TextFile:
    r"""Read a document from a file.

    The formats are those of `spscanner_rag.files.formats`, such as plain text,
    Markdown, HTML, PDF and DOCX.

    Parameters
    ----------
    path : str or Path
        The file; ``-`` is standard input. Its format is known by its ending, or else by
        its first bytes.
    seconds : float, optional
        Time limit for reading a PDF or a large file; None: by its size. When it ends,
        the pages read so far are returned, with a note.
    progress : callable, optional
        For a PDF, called with the number of pages read and the number of all pages.
    ocr : str, default ""
        For a PDF, languages in which Tesseract recognizes pages without text, as it
        names them: ``"eng"``, ``"deu+eng"``. Nothing is recognized by default.

    Returns
    -------
    TextFile
        Its text, and the positions of pages, headings, list items, fences and table
        rows. Its methods take offsets in ``text``: ``document.page(start)``,
        ``document.headings(start)``.

    Raises
    ------
    ImportError, ValueError
        If the package that reads this format, or Tesseract, is missing; if the file
        cannot be read, is of another format than its ending says, or is broken,
        encrypted, without text or too large.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "treaty.md"
    >>> _ = path.write_text("# Peace\n\nAnne signed the treaty.")
    >>> document = read(path)
    >>> document.headings(document.text.index("Anne"))
    ('Peace',)
    """
    path = str(path)
    return read_bytes(path, bytes_of(path), seconds=seconds, progress=progress, ocr=ocr)


def read_bytes(
    path: str,
    data: bytes,
    *,
    seconds: float | None = None,
    check: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    ocr: str = "",
) -> TextFile:
    """Read a document from the content of a file, otherwise as `read`.

    Parameters
    ----------
    path : str
        The file's name.
    data : bytes
        Its content.
    seconds, progress, ocr
        As for `read`.
    check : callable, optional
        Called while a PDF or a large file is read; it may raise an exception to stop
        reading.

    Examples
    --------
    >>> read_bytes("treaty.txt", b"Anne signed the treaty.").text
    'Anne signed the treaty.'
    """
    try:
        file_format = format_of(path, data)
        if len(data) > file_format.most_bytes:
            raise _too_large(len(data), file_format)
        if not data or data.isspace():
            raise _empty(bool(data), FORMATS["text"])
        if seconds is None:
            seconds = seconds_for(data)
            if ocr:
                seconds = max(seconds, OCR_SECONDS)
        if file_format.limits_itself:
            document: TextFile = file_format.read(data, seconds, check, progress, ocr)
        elif file_format.is_apart or file_format.bytes_of_work(data) > AT_ONCE_BYTES:
            for module in file_format.needs:
                import_extra(module, f"reading {file_format.name}", file_format.extra)
            document = _read_apart(file_format, data, seconds, check)
        else:
            document = file_format.read(data)
        if not document.text or document.text.isspace():
            raise _empty(bool(document.text), file_format)
    except (ImportError, ValueError) as error:
        refusal = ImportError if isinstance(error, ImportError) else ValueError
        raise refusal(f"{name_of(path)}: {error}") from error.__cause__
    return replace(document, path=path)


def _read_apart(
    file_format: FileFormat,
    data: bytes,
    seconds: float,
    check: Callable[[], None] | None,
) -> TextFile:
    blocks: list[Block] = []
    places: list[PlaceStart] = []
    last_record: Record = {}
    for record in read_apart(_records, data, seconds, check, file_format.name):
        if "refused" in record:
            refusal = ImportError if record["missing"] else ValueError
            raise refusal(record["refused"])
        blocks += map(block_of, record.get("blocks", ()))
        for start, name in record.get("places", ()):
            places.append(PlaceStart(start, name))
        last_record = record
    if "text" not in last_record:
        raise ValueError(
            f"got {file_format.name} that takes more than {seconds:.0f} seconds, or too"
            " much memory; expected less: split it"
        )
    text = last_record["text"]
    if text is None:  # the file's own
        text = decoded(data)
    return TextFile(
        "",
        text,
        tuple(blocks),
        notes=tuple(last_record["notes"]),
        places=tuple(places),
        metadata=last_record["metadata"],
    )


def _records(data: bytes, format_name: str) -> Iterator[Record]:
    """Yield blocks and places of a document, then its text, in the separate process."""
    file_format = FORMATS[format_name]
    try:
        document: TextFile = file_format.read(data)
    except (ValueError, ImportError) as error:
        yield {"refused": str(error), "missing": isinstance(error, ImportError)}
        return
    for start in range(0, len(document.blocks), _BLOCKS_OF_RECORD):
        yield {"blocks": document.blocks[start : start + _BLOCKS_OF_RECORD]}
    for start in range(0, len(document.places), _BLOCKS_OF_RECORD):
        yield {"places": document.places[start : start + _BLOCKS_OF_RECORD]}
    yield {
        "text": None if file_format.keeps_text else document.text,
        "notes": document.notes,
        "metadata": dict(document.metadata),
    }


def most_bytes_of(path: str) -> int:
    """Return the most bytes that a file with this name may have."""
    name = format_named_by(path)
    if name is not None:
        return FORMATS[name].most_bytes
    return max(file_format.most_bytes for file_format in FORMATS.values())


def bytes_of(path: str, opener: Opener | None = None) -> bytes:
    """Return the content of a file or of standard input.

    ``opener`` opens the file, as for ``open``.

    Raises
    ------
    ValueError
        If it cannot be read or is too large.
    """
    most_bytes = most_bytes_of(path)
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(most_bytes + 1)
    try:
        with open(path, "rb", opener=opener) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return file.read(most_bytes + 1)
            # 0 for files such as those of /proc, and some of these never end
            size = status.st_size
            data = file.read(size + 1) if 0 < size <= most_bytes else b""
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
    if size > most_bytes:
        file_format = FORMATS[format_named_by(path) or "text"]
        raise ValueError(f"{path}: {_too_large(size, file_format)}")
    if len(data) != size:
        raise ValueError(
            f"{path}: got another size than the {size:,} bytes it had; expected a file"
            " that does not change while it is read: try again when it is complete"
        )
    return data


def _too_large(size: int, file_format: FileFormat) -> ValueError:
    return ValueError(
        f"got {size / _MIB:,.0f} MiB; expected at most"
        f" {file_format.most_bytes / _MIB:.0f} MiB of {file_format.name}: split it"
    )


def _empty(has_content: bool, file_format: FileFormat) -> ValueError:
    problem = "only white space" if has_content else "an empty file"
    if not file_format.keeps_text:
        problem = f"{file_format.name} without text"
    return ValueError(
        f"got {problem}; expected text to scan: check that it is the right file"
    )
