"""Files of JSON objects, one a line, that survive a program killed in the middle of a line."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file with their numbers from 1; nothing if there is no file.

    A last line without its ``\n``, which a killed program leaves, is cut off the file after the others were read.
    """
    if not path.exists():
        return
    whole = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                os.truncate(path, whole)
                return
            yield number, line
            whole += len(line)


def append_records(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Append JSON objects in one write: all of them or, as on a full disk, none.

    Several threads and programs may append to the same file; a system that appends in one step keeps their
    lines apart.
    """
    lines = memoryview("".join(json.dumps(record) + "\n" for record in records).encode("ascii"))
    written = 0
    with path.open("ab", buffering=0) as file:
        try:
            while written < len(lines):
                written += file.write(lines[written:])
        except BaseException:  # leave no half line for the next one to be glued to
            if written:
                file.truncate(file.tell() - written)
            raise
