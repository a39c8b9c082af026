"""Document files: read as UTF-8, located by line and column, shown without their control characters."""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results import Passage, ScanResult
from spscanner_rag.results.selection import rank

STANDARD_INPUT = "-"

# What a terminal or a page would act on instead of showing: control characters other than tab and line
# feed, bidirectional and other invisible format characters, line separators, tags, lone surrogates.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_BREAK = re.compile("\r\n|\r|\n")


@dataclass(frozen=True)
class Document:
    r"""A document that was read from a file.

    Attributes
    ----------
    path
        The path as the user gave it, ``-`` for standard input.
    text
        The decoded text without its byte order mark; nothing else is changed, so ``\r\n`` stays.
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


@dataclass(frozen=True)
class ScannedDocument:
    """A document, its scores and what was selected from it.

    Attributes
    ----------
    passages
        The selected sentences and their neighbours, unmerged, in the order asked for.
    picks
        Those of them that were selected for their score, in the same order.
    """

    document: Document
    result: ScanResult
    passages: tuple[Passage, ...]
    picks: tuple[Passage, ...]

    def number(self, passage: Passage) -> int:
        """Return which sentence of the document, from 0, an unmerged passage is."""
        return int(np.searchsorted(self.result.starts, passage.start))

    @cached_property
    def ranks(self) -> dict[int, int]:
        """Rank from 1 of each pick, by the offset at which it starts."""
        best_first = rank(self.result.logits)
        starts = self.result.starts[best_first].tolist()
        picked = {passage.start for passage in self.picks}
        return {start: place for place, start in enumerate(filter(picked.__contains__, starts), start=1)}


def visible(text: str) -> str:
    r"""Write out what would not be shown: an escape character becomes the four characters ``\x1b``.

    Line feeds and tabs stay, and CR LF becomes a line feed.
    """
    return _UNSHOWABLE.sub(lambda match: written_out(match.group()), text.replace("\r\n", "\n"))


def split_unshowable(text: str) -> list[str]:
    """Split at the characters that :func:`visible` writes out; these are at the odd places."""
    return re.split(f"({_UNSHOWABLE.pattern})", text.replace("\r\n", "\n"))


def written_out(character: str) -> str:
    r"""Return the Python escape of a character, such as ``\x1b`` or ``\u202e``."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """Return the text visible and on one line, each run of white space as one space."""
    return " ".join(visible(text).split())


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Read document files; ``-`` is standard input.

    Raises
    ------
    ValueError
        For the first that cannot be read, is a folder, is empty, or is not UTF-8 text.
    """
    if list(paths).count(STANDARD_INPUT) > 1:
        raise ValueError("-: got standard input more than once; it can be read once: give - one time")
    return [Document(path, _decode(path, _read(path))) for path in paths]


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


def _decode(path: str, data: bytes) -> str:
    name = "standard input" if path == STANDARD_INPUT else path
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


def check_output(out: Path, inputs: Sequence[str]) -> None:
    """Raise ``ValueError`` when ``out`` cannot be written, or would overwrite one of the documents."""
    if out.is_dir():
        raise ValueError(f"--out {out}: got a folder; expected a file: add a file name")
    if not out.parent.is_dir():
        raise ValueError(f"--out {out}: there is no folder {out.parent}; expected an existing one: create it")
    if not os.access(out if _is_special(out) else out.resolve().parent, os.W_OK):
        raise ValueError(f"--out {out}: no permission to write; expected a writable place: choose another")
    for path in inputs:
        if path != STANDARD_INPUT and out.exists() and Path(path).exists() and out.samefile(path):
            raise ValueError(f"--out {out}: got a document to scan; expected another file: change the name")


def write_file(out: Path, content: str) -> None:
    """Write UTF-8 whole or not at all: to a file beside ``out`` that then takes its place."""
    data = content.encode()
    if _is_special(out):  # a device or a named pipe has no content to protect
        out.write_bytes(data)
        return
    target = out.resolve()  # through a link, whose target is replaced
    umask = os.umask(0)
    os.umask(umask)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def write_output(content: str, out: Path | None, *, is_page: bool) -> None:
    """Write a result to a file, or to standard output; a page in UTF-8, as it says of itself."""
    if out is not None:
        write_file(out, content)
    elif is_page and hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode())
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(content)
        sys.stdout.flush()
