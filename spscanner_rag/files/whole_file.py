"""Files written whole or not at all: a file beside the target takes its place once it is complete."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The path of an unfinished file to write to; it becomes ``path`` when the block ends without an error.

    The unfinished file is ``NAME.part`` beside ``path``. A killed program leaves it behind, and the next attempt
    overwrites it, so only one program may write the same file at a time.

    Parameters
    ----------
    path : Path
        In an existing folder.
    """
    unfinished = path.with_name(path.name + ".part")
    try:
        yield unfinished
        _replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all.

    A link is followed and its target replaced, and the permissions of an existing file are kept. Several
    programs may write the same file: the last one wins. A device or a named pipe is written to directly.
    """
    data = text.encode()
    if is_special(path):
        path.write_bytes(data)
        return
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        unfinished.chmod(_mode(target))
        _replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def is_special(path: Path) -> bool:
    """Whether a path is a device, a named pipe or a folder: there is no content to protect."""
    return path.exists() and not path.is_file()


def _replace(unfinished: Path, target: Path) -> None:
    with unfinished.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(unfinished, target)


def _mode(target: Path) -> int:
    """The permissions of an existing file, else those that a new one gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
