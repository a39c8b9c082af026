"""Writes results to files or standard output, or as JSON lines that survive a kill.

Locks a run's folder.
"""

import json
import mmap
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spscanner_rag.files.documents import STANDARD_INPUT
from spscanner_rag.system.whole_files import (
    is_special,
    remove_leftovers,
    telling_of_full_disks,
    write_whole,
)


def check_output(
    out: Path | None, inputs: Sequence[str], option: str = "--out"
) -> None:
    """Raise ``ValueError`` if the file cannot be written or would overwrite one of the documents."""
    if out is None:
        return
    if out.is_dir():
        raise ValueError(
            f"{option} {out}: got a folder; expected a file: add a file name"
        )
    if not out.parent.is_dir():
        raise ValueError(
            f"{option} {out}: there is no folder {out.parent}; expected one: create it"
        )
    if not os.access(out if is_special(out) else out.resolve().parent, os.W_OK):
        raise ValueError(
            f"{option} {out}: no permission to write; expected a writable place: choose"
            " another"
        )
    for path in inputs:
        if (
            path != STANDARD_INPUT
            and out.exists()
            and Path(path).exists()
            and out.samefile(path)
        ):
            raise ValueError(
                f"{option} {out}: got a document to scan; expected another file: change"
                " the name"
            )


def write_output(content: str | bytes, out: Path | None, *, is_page: bool) -> None:
    """Write a result to a file or to standard output.

    A page is written as UTF-8, as its head declares.
    """
    if out is not None:
        if not is_special(out):
            remove_leftovers(out.resolve().parent)
        write_whole(out, content)
    elif isinstance(content, bytes) or (is_page and hasattr(sys.stdout, "buffer")):
        sys.stdout.flush()
        sys.stdout.buffer.write(
            content if isinstance(content, bytes) else content.encode()
        )
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(content)
        sys.stdout.flush()


def json_text(content: object) -> str:
    """JSON in ASCII, so no character of a document can control a terminal, and any encoding can write it."""
    return json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def parse_json(content: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    """`json.loads`, but ``ValueError`` if an object repeats a key: only the last value would count."""
    return json.loads(content, object_pairs_hook=_distinct)


def parse_object(content: str | bytes) -> dict[str, Any]:
    """`parse_json`, but ``ValueError`` also for anything but an object, and for nesting that is too deep."""
    try:
        found = parse_json(content)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, dict):
        raise ValueError(f"a JSON {type(found).__name__}")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} twice")
    return found


def complete_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Yield a file's numbered lines, if it exists, except a last one without ``\n``, which is incomplete."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # a writer may still add the rest of this line
            yield number, line


def append_records(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Append JSON objects, all or none, and return the byte offset where the first new line begins.

    An incomplete line that a killed program left is cut off. Only one program may
    write: see `folder_lock`.
    """
    lines = memoryview(
        "".join(json.dumps(record) + "\n" for record in records).encode("ascii")
    )
    written = 0
    with telling_of_full_disks(path), path.open("a+b", buffering=0) as file:
        whole = size = file.seek(0, os.SEEK_END)
        if size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                whole = content.rfind(b"\n") + 1
        if whole < size:  # the last writer was killed
            file.truncate(whole)
        try:
            while written < len(lines):
                written += file.write(lines[written:])
        except BaseException:  # do not leave half a line
            if written:
                file.truncate(whole)
            raise
    return whole


class OtherRunError(ValueError):
    """A folder contains the results of a run on other inputs, or of an unknown run."""


def earlier_run(path: Path, results: str) -> dict[str, Any]:
    """Read the file that describes the inputs of the ``results`` beside it.

    `OtherRunError` if there is none.
    """
    if not path.exists():
        raise OtherRunError(
            f"{path.parent}: got {results} without {path.name}, which says what they"
            " were made from; expected both: give another --out, or delete the folder"
        )
    try:
        return parse_object(path.read_bytes())
    except ValueError as error:
        raise OtherRunError(
            f"{path}: expected the JSON object that says what the {results} were made"
            f" from, got a damaged file ({error}); give another --out, or delete the"
            " folder"
        ) from None


def refuse_other_run(
    folder: Path,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    leaving_out: Collection[tuple[str, str]] = (),
) -> None:
    """Raise an `OtherRunError` that names what differs from the earlier run.

    See `difference`.
    """
    if other := difference(before, now, leaving_out):
        raise OtherRunError(
            f"{folder} has the results of a run on other inputs, or with other models"
            f" or options ({other}); give the same again, or another --out"
        )


def difference(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    leaving_out: Collection[tuple[str, str]] = (),
) -> str:
    """Describe the values that differ; None equals no value.

    ``leaving_out``: first two names of paths to skip.
    """
    as_read = json.loads(
        json.dumps(dict(now))
    )  # as read from JSON: lists for tuples, strings for names
    own, others = dict(leaves(before)), dict(leaves(as_read))
    differing = sorted(
        path
        for path in own.keys() | others.keys()
        if own.get(path) != others.get(path) and path[:2] not in leaving_out
    )
    shown = [
        f"{': '.join(path)}: {_shown(own.get(path))}, now {_shown(others.get(path))}"
        for path in differing[:6]
    ]
    return "; ".join(shown) + (
        f"; and {len(differing) - 6} more" if len(differing) > 6 else ""
    )


def leaves(
    content: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the values in nested objects that are neither objects nor None, each with the path of names to it."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from leaves(value, (*path, name))
    elif content is not None:
        yield path, content


def _shown(value: object) -> str:
    """The value for a message; a digest is shortened to its first digits."""
    return (
        f"{value[:12]}..."
        if isinstance(value, str) and len(value) == 64
        else f"{value!r:.80}"
    )
