"""Lines of data files, plain or compressed, and errors that say where a bad one is."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spscanner_rag.system.strict_json import parse_object

MOST_EXPANSION = 100
LEAST_LIMIT = 2**27
"""A compressed file may expand to `MOST_EXPANSION` times its size.

It may in any case expand to `LEAST_LIMIT` bytes. Text expands three to ten times; a
file beyond these limits was made to fill the memory.
"""


class DataError(ValueError):
    """A bad line of a data file, with a message that names file, line and reason."""


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, plain, ``.gz`` or ``.xz``, with numbers from 1.

    `DataError` if the file is damaged or expands beyond `MOST_EXPANSION`.
    """
    number = 0
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(path.suffix, open)(path, "rb") as file:
        lines: Iterable[bytes] = file
        if path.suffix in openers:
            lines = _bounded_lines(file, path)
        try:
            for number, line in enumerate(lines, 1):
                yield number, line
        except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
            raise DataError(
                f"{path}, line {number + 1}: expected a complete {path.suffix} file,"
                f" got {error}"
            ) from None


def json_objects(path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and JSON object of each line that is not blank.

    `DataError`, which says what was ``expected``, for any other value.
    """
    for number, line in numbered_lines(path):
        if line.strip():
            with expecting(expected, f"{path}, line {number}"):
                record = parse_object(line)
            yield number, record


@contextmanager
def expecting(expected: str, location: str) -> Iterator[None]:
    """Turn an error in reading into a `DataError` that says where it is.

    The message also says what was ``expected``.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{location}: expected {expected}, got {error}") from None


def require(fits: object, expected: str, got: object, location: str) -> None:
    """Raise `DataError` unless ``fits`` is true.

    Examples
    --------
    >>> from spscanner_lab.evidence.data_lines import require
    >>> require(False, "text", 3, "line 1")
    Traceback (most recent call last):
        ...
    spscanner_lab.evidence.data_lines.DataError: line 1: expected text, got 3
    """
    if not fits:
        raise DataError(f"{location}: expected {expected}, got {got!r:.60}")


def _bounded_lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file, never reading more than the limit."""
    size = path.stat().st_size
    limit = max(LEAST_LIMIT, MOST_EXPANSION * size)
    bytes_left = limit
    while line := file.readline(bytes_left + 1):
        bytes_left -= len(line)
        if bytes_left < 0:
            raise DataError(
                f"{path}: got a compressed file of {size:,} bytes that expands to more"
                f" than {limit:,}; expected text, which shrinks far less: if you trust"
                " the file, decompress it and give the result"
            )
        yield line
