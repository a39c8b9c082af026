"""Opens a file below a folder by descriptors, so that no link can lead out of it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # else a pipe would wait for its writer


def open_below(folder: Path, parts: Sequence[str]) -> int:
    """Open a regular file, and return its descriptor.

    Each folder on the way is opened below the one before, and none may be a link:
    whatever is swapped in meanwhile, nothing outside is opened.

    Parameters
    ----------
    folder : Path
        Where to begin.
    parts : sequence of str
        The names from there to the file, the file's own last.

    Raises
    ------
    OSError
        If a part is missing or a link, or the file is not a regular file.
    """
    if os.open not in os.supports_dir_fd:  # as on Windows
        return _regular(os.open(folder.joinpath(*parts), _FLAGS))
    current = os.open(folder, _FLAGS | _FOLDER)
    for part in parts[:-1]:
        try:
            below = os.open(part, _FLAGS | _FOLDER | _NO_LINK, dir_fd=current)
        finally:
            os.close(current)
        current = below
    try:
        opened = os.open(parts[-1], _FLAGS | _NO_LINK | _NO_WAIT, dir_fd=current)
    finally:
        os.close(current)
    return _regular(opened)


def _regular(descriptor: int) -> int:
    """The descriptor of a regular file, where any other is closed and refused."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError("not a regular file")
