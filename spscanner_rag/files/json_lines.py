"""Files of JSON objects, one a line, that survive a program killed in the middle of a line."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file with their numbers from 1; nothing if there is no file.

    A last line without its ``\n``, which a killed program leaves, is cut off once the others are read.
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
    """Append JSON objects in one write: all of them or, for example on a full disk, none.

    Several threads and programs may append to the same file; their lines do not mix where the system appends in
    one step.
    """
    lines = memoryview("".join(json.dumps(record) + "\n" for record in records).encode("ascii"))
    written = 0
    with path.open("ab", buffering=0) as file:
        try:
            while written < len(lines):
                written += file.write(lines[written:])
        except BaseException:  # do not leave half a line, to which the next one would be joined
            if written:
                file.truncate(file.tell() - written)
            raise
