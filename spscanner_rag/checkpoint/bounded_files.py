"""Open and read files of a checkpoint, within bounds."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.text.escaping import first_line

LARGEST_JSON: Final = 2**24
"""Maximum bytes of a ``config.json``; those of published models have less than
2**20."""
# maximum bytes of an encoder, or of two million words of 1,024 numbers
LARGEST_TABLE: Final = 2**31
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
Check = Callable[[Path, bytes], None]
"""Called with the path and the content of a file before the content is parsed; see
`Digests.check`."""


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading.

    Refuse a git-LFS pointer, and a named pipe, which would wait forever.
    """
    try:
        if path.exists() and not path.is_file():
            raise CheckpointError(
                f"{path}: a folder, a pipe or a device; expected a regular file"
            )
        with path.open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                raise CheckpointError(
                    f"{path}: a git-LFS pointer, not the file itself; run `git lfs"
                    " pull` there"
                )
            file.seek(0)
            yield file
    except OSError as error:
        raise CheckpointError(
            f"{path}: {error.strerror}; expected a file that can be read"
        ) from None


def read_bytes(path: Path, largest: int, check: Check | None = None) -> bytes:
    """Read a file of at most ``largest`` bytes, and ``check`` it."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise CheckpointError(
                f"{path}: {size:,} bytes; expected at most {largest:,}: it is not a"
                " checkpoint's file"
            )
        content = file.read(size)
    if check is not None:
        check(path, content)
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    content = read_bytes(path, LARGEST_JSON)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: not JSON ({first_line(error)}); expected a JSON object"
        ) from None
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path}: a JSON {type(value).__name__}; expected an object"
        )
    return value
