"""Writes a result to a file or to standard output, and checks the file beforehand."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spscanner_rag.files.documents import STANDARD_INPUT
from spscanner_rag.system.whole_files import is_special, remove_leftovers, write_whole


def check_output(
    out: Path | None, inputs: Sequence[str], option: str = "--out"
) -> None:
    """Refuse a file that cannot be written, or that is one of the documents.

    Parameters
    ----------
    out : Path, optional
        The file; None is standard output.
    inputs : sequence of str
        Paths of the documents.
    option : str
        The option's name for messages.

    Raises
    ------
    ValueError
    """
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
    place = out if is_special(out) else out.resolve().parent
    if not os.access(place, os.W_OK):
        raise ValueError(
            f"{option} {out}: no permission to write; expected a writable place: choose"
            " another"
        )
    for path in inputs:
        if path != STANDARD_INPUT and _is_same_file(out, Path(path)):
            raise ValueError(
                f"{option} {out}: got a document to scan; expected another file: change"
                " the name"
            )


def _is_same_file(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def write_output(content: str | bytes, out: Path | None, *, is_page: bool) -> None:
    """Write a result to a file or to standard output.

    Parameters
    ----------
    content : str or bytes
    out : Path, optional
        The file; None is standard output.
    is_page : bool
        A page is written as UTF-8, as its head declares.
    """
    if out is not None:
        if not is_special(out):
            remove_leftovers(out.resolve().parent)
        write_whole(out, content)
        return
    if is_page and isinstance(content, str) and hasattr(sys.stdout, "buffer"):
        content = content.encode()
    if isinstance(content, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(content)
        sys.stdout.flush()
