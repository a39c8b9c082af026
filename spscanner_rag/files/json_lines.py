"""Files of JSON objects, one a line, that survive a program killed in the middle of a line."""

import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import telling_of_full_disks

if sys.platform != "win32":
    import fcntl

_BLOCK_BYTES = 2**16
_APPENDING = threading.Lock()


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file with their numbers from 1; nothing if there is no file.

    A last line without its ``\n`` is left out: a killed program left it, or another one is still writing it. The
    file is not changed.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # what comes next would be the rest of this line
            yield number, line


def append_records(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Append JSON objects in one write: all of them or, for example on a full disk, none.

    Half a line that a killed program left at the end is cut off. Several threads and programs may append to the
    same file; their lines do not mix (on Windows, those of several programs may). Returns the place of the first
    new line, in bytes from the start of the file.
    """
    lines = memoryview("".join(json.dumps(record) + "\n" for record in records).encode("ascii"))
    written = 0
    with telling_of_full_disks(path), _APPENDING, path.open("a+b", buffering=0) as file, _alone(file):
        whole = _whole_bytes(file)
        if whole < file.seek(0, os.SEEK_END):  # no other program is writing: who wrote this was killed
            file.truncate(whole)
        try:
            while written < len(lines):
                written += file.write(lines[written:])
        except BaseException:  # do not leave half a line
            if written:
                file.truncate(whole)
            raise
    return whole


@contextmanager
def _alone(file: FileIO) -> Iterator[None]:
    """Keep other programs from appending; the system ends the lock of a program that is killed."""
    if sys.platform != "win32":
        with suppress(OSError):  # some network file systems have no locks
            fcntl.lockf(file, fcntl.LOCK_EX)  # ends when the file is closed
    yield


def _whole_bytes(file: FileIO) -> int:
    """The length of a file up to the end of its last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
