"""Document files: read as UTF-8, located by line and column."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STANDARD_INPUT = "-"
_LINE_BREAK = re.compile("\r\n|\r|\n")


@dataclass(frozen=True)
class TextFile:
    r"""A document that was read from a file.

    ``path`` is as the user gave it, ``-`` for standard input. ``text`` is the decoded text without its byte order
    mark; nothing else is changed, so ``\r\n`` stays.
    """

    path: str
    text: str

    @cached_property
    def _line_starts(self) -> NDArray[np.int64]:
        ends = [match.end() for match in _LINE_BREAK.finditer(self.text)]
        return np.array([0, *ends], dtype=np.int64)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1; a line ends at LF, CR LF or CR."""
        line = int(np.searchsorted(self._line_starts, offset, side="right"))
        return line, offset - int(self._line_starts[line - 1]) + 1

    def place(self, start: int, end: int) -> dict[str, object]:
        """A span for JSON results: ``start``, ``end``, and the ``line`` and ``column`` of the start."""
        line, column = self.position(start)
        return {"start": start, "end": end, "line": line, "column": column}


def name_of(path: str) -> str:
    """The name of a document in messages and views: its path, or "standard input"."""
    return "standard input" if path == STANDARD_INPUT else path


def read_text_files(paths: Sequence[str]) -> list[TextFile]:
    """Read document files; ``-`` is standard input.

    Raises ``ValueError`` for the first that cannot be read, is a folder, is empty, or is not UTF-8 text.
    """
    if list(paths).count(STANDARD_INPUT) > 1:
        raise ValueError("-: got standard input more than once; expected it once: give a single -")
    return [TextFile(path, _decoded(name_of(path), _read(path))) for path in paths]


def _read(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise ValueError(f"{path}: got a folder; expected a text file: name the files in it") from None
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; expected a text file: check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ValueError(f"{path}: cannot be read ({reason}); expected a readable text file") from None


def _decoded(name: str, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name}: got UTF-16; expected UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`")
    if data.startswith(b"%PDF-") or b"\0" in data:
        kind = "a PDF" if data.startswith(b"%PDF-") else f"binary data (a zero byte at {data.index(0)})"
        raise ValueError(
            f"{name}: got {kind}; expected UTF-8 text: extract it first, for example with pdftotext or pandoc"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: got byte 0x{data[error.start]:02x} at {error.start}, not UTF-8; expected UTF-8 text: "
            "convert text in another encoding, for example with `iconv -f LATIN1 -t UTF-8`"
        ) from None
    if not text or text.isspace():
        kind = "only white space" if text else "an empty file"
        raise ValueError(f"{name}: got {kind}; expected text to scan: check that it is the right file")
    return text
