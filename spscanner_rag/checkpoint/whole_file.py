"""Files written whole or not at all: a temporary file replaces the target once it is complete.

The files of a checkpoint cannot be replaced together. Whole folders could be exchanged, but a folder may also hold
files that others write, or be a program's working folder or a mount point. So a complete new checkpoint first gets
its place within the folder, by one rename; from then on `current_files` finds it there. Its files then replace the
old ones, and the place is removed. A killed program leaves the place behind, and the next save completes what it
had begun.
"""

import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from spscanner_rag.checkpoint.file_access import CONFIG, SAFETENSORS, TOKENIZER, WORD_VECTORS

if sys.platform != "win32":
    import fcntl

_CHECKPOINT_FILES: Final = (CONFIG, SAFETENSORS, TOKENIZER, WORD_VECTORS)
_PLACE: Final = ".new-checkpoint"
_LEFTOVER = re.compile(r"\..+[.-][0-9a-f]{32}\.part(ial)?")
"""Unfinished files, and folders of checkpoints, that have a name of their own."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def whole_file(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Give a long-running writer the path of an unfinished file, which becomes ``path`` if the block succeeds.

    A killed program leaves ``NAME.part`` behind, and the next attempt overwrites it, so only one program may write
    the same file at a time. With ``shared`` each writer has an unfinished file of its own: the last one wins.
    """
    unfinished = _own_unfinished(path) if shared else path.with_name(f"{path.name}.part")
    with _replacing(path, unfinished):
        yield unfinished
        fsync_file(unfinished)


def write_whole(path: Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all; among several programs the last one wins.

    A link is followed, and an existing file keeps its permissions. A device or named pipe is written to directly.
    """
    data = text.encode()
    if is_special(path):
        path.write_bytes(data)
        return
    target = path.resolve()
    unfinished = _own_unfinished(target)
    with _replacing(target, unfinished), unfinished.open("xb") as file:
        if target.exists():  # before the text is in the file, so that nobody else can read it
            shutil.copymode(target, unfinished)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove_leftovers(folder: Path, older_than: float = 3600.0) -> list[str]:
    """Remove what killed programs left unfinished, and return the names.

    Only the names of unfinished files count, unchanged for ``older_than`` seconds: others may still be written.
    """
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


@contextmanager
def telling_of_full_disks(path: Path) -> Iterator[None]:
    """Turn the error of a write without room into one that names the file and says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        told = OSError(
            f"{path}: cannot be written ({error.strerror}); what it held before is still there: make room, then "
            "give the same command again"
        )
        told.errno = error.errno
        raise told from None


def is_special(path: Path) -> bool:
    """True if a path is a device, a named pipe or a folder: there is no content to protect."""
    return path.exists() and not path.is_file()


def _own_unfinished(target: Path) -> Path:
    return target.with_name(f".{target.name[:50]}.{uuid4().hex}.part")


@contextmanager
def _replacing(target: Path, unfinished: Path) -> Iterator[None]:
    """Let an unfinished file take the place of the target after the block, or remove it after an error."""
    try:
        with telling_of_full_disks(target):
            yield
            os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a replacement last through a power failure, where the system can sync a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def current_files(folder: Path) -> Path:
    """Return the folder that a checkpoint is read from: the given one, unless a save into it was interrupted."""
    place = folder / _PLACE
    return place if (place / CONFIG).is_file() else folder


def replace_files(complete: Path, folder: Path) -> None:
    """Replace the checkpoint's files in ``folder`` by those of another folder within it, which disappears.

    Programs that save to one folder wait for each other. After an ``OSError`` the old or the new checkpoint loads.
    """
    with _one_at_a_time(folder):
        _finish(folder)
        for path in complete.iterdir():
            fsync_file(path)
        for name in (
            _CHECKPOINT_FILES
        ):  # a file that the new checkpoint does not replace stays, for example the tokenizer
            if not (complete / name).exists() and (folder / name).is_file():
                _link(folder / name, complete / name)
        sync_folder(complete)
        complete.rename(folder / _PLACE)
        sync_folder(folder)
        _finish(folder)


def fsync_file(path: Path) -> None:
    """Let a file's content reach the disk before a rename makes the file count."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other program replaces files in the folder, where the system has such locks."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _finish(folder: Path) -> None:
    """Let the files of a complete new checkpoint replace the old ones, if there are any."""
    place = folder / _PLACE
    if not place.is_dir():
        return
    for name in _CHECKPOINT_FILES:
        if (place / name).exists():
            second = place / f"{name}.part"
            second.unlink(missing_ok=True)
            _link(place / name, second)
            second.replace(folder / name)
    sync_folder(folder)
    done = folder / f"{_PLACE}-{uuid4().hex}.partial"
    place.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the system has no hard links."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
        fsync_file(target)
        shutil.copymode(source, target)
