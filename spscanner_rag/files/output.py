"""Output of a result: to a file that is checked before the work and written after it, or to standard output."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spscanner_rag.checkpoint.unfinished import remove_leftovers
from spscanner_rag.checkpoint.whole_file import is_special, write_whole
from spscanner_rag.files.documents import STANDARD_INPUT


def check_output(out: Path | None, inputs: Sequence[str], option: str = "--out") -> None:
    """Raise ``ValueError`` when the file cannot be written, or would overwrite one of the documents."""
    if out is None:
        return
    if out.is_dir():
        raise ValueError(f"{option} {out}: got a folder; expected a file: add a file name")
    if not out.parent.is_dir():
        raise ValueError(
            f"{option} {out}: there is no folder {out.parent}; expected an existing one: create it"
        )
    if not os.access(out if is_special(out) else out.resolve().parent, os.W_OK):
        raise ValueError(f"{option} {out}: no permission to write; expected a writable place: choose another")
    for path in inputs:
        if path != STANDARD_INPUT and out.exists() and Path(path).exists() and out.samefile(path):
            raise ValueError(
                f"{option} {out}: got a document to scan; expected another file: change the name"
            )


def write_output(content: str | bytes, out: Path | None, *, is_page: bool) -> None:
    """Write a result to a file, or to standard output; a page as UTF-8, as its head declares."""
    if out is not None:
        if not is_special(out):
            remove_leftovers(out.resolve().parent)
        write_whole(out, content)
    elif isinstance(content, bytes) or (is_page and hasattr(sys.stdout, "buffer")):
        sys.stdout.flush()
        sys.stdout.buffer.write(content if isinstance(content, bytes) else content.encode())
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(content)
        sys.stdout.flush()


def json_text(content: object) -> str:
    """JSON in ASCII: no character of a document can control a terminal, and any encoding can hold it."""
    return json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
