"""Files of JSON lines that survive a kill: an incomplete last line is no record."""

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from spscanner_rag.system.whole_files import telling_of_full_disks


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Yield the numbered lines of a file, except an incomplete last one.

    A line without ``\n`` is incomplete. A file that does not exist has no lines.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "records.jsonl"
    >>> _ = path.write_bytes(b'{"id": 1}\n{"id"')
    >>> list(complete_lines(path))
    [(1, b'{"id": 1}\n')]
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # a writer may still add the rest of this line
            yield number, line


def append_records(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Append JSON objects to a file, all of them or none.

    An incomplete line that a killed program left is cut off. Only one program may
    write at a time: see `spscanner_rag.system.folder_lock`.

    Parameters
    ----------
    path : Path
        The file, which is created if it does not exist.
    records : iterable of mappings

    Returns
    -------
    int
        The byte offset where the first new line begins.
    """
    text = "".join(json.dumps(record) + "\n" for record in records)
    lines = memoryview(text.encode("ascii"))
    with telling_of_full_disks(path), path.open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        complete_size = _size_of_complete_lines(file.fileno(), size)
        if complete_size < size:  # the last writer was killed
            file.truncate(complete_size)
        written = 0
        try:
            while written < len(lines):
                written += file.write(lines[written:])
        except BaseException:  # do not leave half a line
            if written:
                file.truncate(complete_size)
            raise
    return complete_size


def _size_of_complete_lines(descriptor: int, size: int) -> int:
    """Return the bytes of a file up to the end of its last complete line."""
    if not size:
        return 0
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
        return content.rfind(b"\n") + 1
