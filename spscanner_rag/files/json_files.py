"""JSON that programs leave for each other: read strictly, one object a line that survives a kill, and compared."""

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from spscanner_rag.checkpoint.whole_file import telling_of_full_disks

if sys.platform != "win32":
    import fcntl

_BLOCK_BYTES = 2**16
_APPENDING = threading.Lock()


def parse_json(content: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    """`json.loads`, but ``ValueError`` for a key that an object has twice: only the last would count."""
    return json.loads(content, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} twice")
    return found


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""The numbered lines of a file, if any, but not a last one without ``\n``, left by a kill or half written."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # what comes next would be the rest of this line
            yield number, line


def append_records(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Append JSON objects in one write, all or none, and return the byte where the first new line begins.

    Half a line that a killed program left is cut off. Lines of several threads do not mix,
    nor do those of several programs, except on Windows.
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


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as it comes back from a file: tuples are lists, and names are strings."""
    made: dict[str, Any] = json.loads(json.dumps(dict(content)))
    return made


def difference(
    before: Mapping[str, Any], now: Mapping[str, Any], leaving_out: Collection[tuple[str, str]] = ()
) -> str:
    """The values that differ, for people; None equals no value. ``leaving_out``: first two names of paths."""
    own, others = _flat(before), _flat(as_json(now))
    differing = sorted(
        path
        for path in own.keys() | others.keys()
        if own.get(path) != others.get(path) and path[:2] not in leaving_out
    )
    shown = [
        f"{': '.join(path)}: {_shown(own.get(path))}, now {_shown(others.get(path))}"
        for path in differing[:6]
    ]
    return "; ".join(shown) + (f"; and {len(differing) - 6} more" if len(differing) > 6 else "")


def _flat(content: object) -> dict[tuple[str, ...], object]:
    """The values below nested objects, by the names that lead to them."""
    return dict(_leaves(content, ()))


def _leaves(content: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _leaves(value, (*path, name))
    elif content is not None:
        yield path, content


def _shown(value: object) -> str:
    """The value for people; of a digest, its first digits."""
    return f"{value[:12]}..." if isinstance(value, str) and len(value) == 64 else f"{value!r:.80}"
