"""Files that are written for a long time, and what killed programs leave of them."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import replacing

_LEFTOVER = re.compile(r"\..+[.-][0-9a-f]{32}\.part(ial)?")
"""Unfinished files, and folders of checkpoints, that have a name of their own."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a long-running writer the path of an unfinished file, which becomes ``path`` if the block succeeds.

    A killed program leaves ``NAME.part`` behind, and the next attempt replaces it, so only one program may write
    the same file at a time. An existing file keeps its permissions.
    """
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)  # may also be a link that leads elsewhere
    with replacing(path, unfinished):
        yield unfinished
        fsync_file(unfinished)
        if path.exists():
            shutil.copymode(path, unfinished)


def remove_leftovers(folder: Path, older_than: float = 3600.0) -> list[str]:
    """Remove what killed programs left unfinished, unchanged for ``older_than`` seconds; return the names."""
    names: list[str] = []
    with suppress(OSError):  # no such folder, or one that cannot be listed
        names = [name for name in os.listdir(folder) if _LEFTOVER.fullmatch(name)]
    limit, removed = time.time() - older_than, []
    for name in names:
        path = folder / name
        with suppress(OSError):  # another program may be removing it
            if path.lstat().st_mtime > limit:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            removed.append(name)
    return removed


def fsync_file(path: Path) -> None:
    """Let a file's content reach the disk before a rename makes the file count."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
