"""A lock on a folder of results: one program at a time writes there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spscanner_rag.checkpoint.unfinished import remove_leftovers

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_FILE = ".lock"
_WINDOWS_BYTE = 2**20  # behind the number of the process, which others read
_held: set[int] = set()  # descriptors of the locks of this process


class FolderInUseError(ValueError):
    """Another process writes to the folder."""


@contextmanager
def folder_lock(folder: Path) -> Iterator[list[str]]:
    """Hold a folder's lock, ``.lock``, and give the names of the unfinished files that were removed.

    The system ends the lock with the process, however that ends. A new folder stays only if something was
    written to it. Raises ``FolderInUseError`` that names the other process, ``ValueError`` for an unwritable
    folder.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(folder)
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be written to ({error.strerror}); expected a folder for results: choose another"
        ) from None
    owner = os.getpid()
    try:
        yield remove_leftovers(folder, 0)
    finally:
        if os.getpid() == owner:  # not in a child, which has closed it
            if sys.platform != "win32":  # which does not remove open files
                with suppress(OSError):
                    (folder / LOCK_FILE).unlink()
            _held.discard(descriptor)
            os.close(descriptor)
            if is_new:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()


def refuse_in_use(folder: Path) -> None:
    """Raise `FolderInUseError` if another process holds the lock of a folder; change nothing."""
    with suppress(OSError):
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR)
        try:
            _lock(descriptor, folder)
        finally:
            os.close(descriptor)


def _locked(folder: Path) -> int:
    """The descriptor of the lock file, locked, with the number of this process in it."""
    path = folder / LOCK_FILE
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, folder)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode("ascii"))
                    _held.add(descriptor)
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it meanwhile


def _lock(descriptor: int, folder: Path) -> None:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _WINDOWS_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        process = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
        raise FolderInUseError(
            f"{folder}: in use by another run (process {process}); wait until it ends, or give another --out"
        ) from None
    except OSError:
        pass  # a file system without locks


def _close_in_child() -> None:
    """A child that outlives a killed parent must not keep the lock."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
