"""Files of JSON objects, one a line, that survive a program killed in the middle of a line."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file with their numbers from 1; nothing if there is no file.

    A last line without its ``\n``, which a killed program leaves, is cut off the file once all others were read.
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
    """Append JSON objects in one write, all of them or, as on a full disk, none."""
    lines = memoryview("".join(json.dumps(record) + "\n" for record in records).encode("ascii"))
    with path.open("ab", buffering=0) as file:
        whole = os.fstat(file.fileno()).st_size
        try:
            while lines:
                lines = lines[file.write(lines) :]
        except BaseException:  # leave no half line for the next one to be glued to
            file.truncate(whole)
            raise
