"""A lock on a folder of results: one program at a time writes there."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from spscanner_rag.checkpoint.unfinished import remove_leftovers

LOCK_FILE = ".lock"


class FolderInUseError(ValueError):
    """Another process writes to the folder."""


@contextmanager
def folder_lock(folder: Path) -> Iterator[list[str]]:
    """Hold a folder's lock, ``.lock``, and give the names of the unfinished files that were removed.

    The system ends the lock with the process, however that ends. A new folder stays only if something was
    written to it. Raises ``FolderInUseError``, and ``ValueError`` for an unwritable folder.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be written to ({error.strerror}); expected a folder for results: choose another"
        ) from None
    try:
        yield remove_leftovers(folder, 0)
    finally:
        with suppress(OSError):  # Windows does not remove open files
            (folder / LOCK_FILE).unlink()  # while it is held: who waits for it sees that it is gone
        lock.release()
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def refuse_in_use(folder: Path) -> None:
    """Raise `FolderInUseError` if the lock of a folder is held; change nothing."""
    if (folder / LOCK_FILE).exists():
        with suppress(OSError):
            _locked(folder).release()


def _locked(folder: Path) -> FileLock:
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FolderInUseError(
            f"{folder}: in use by another run; wait until it ends, or give another --out"
        ) from None
    return lock
