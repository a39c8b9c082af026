"""Writes a result to a file or to standard output."""

import sys
from pathlib import Path

from spscanner_rag.system.whole_files import is_special, remove_leftovers, write_whole


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
