"""The lock of a folder of results: one run at a time writes to it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_rag.system.whole_files import remove_leftovers

# Imported only where a folder is locked: every command imports this module.
if TYPE_CHECKING:
    from filelock import FileLock

LOCK_FILE = ".lock"


class FolderInUseError(ValueError):
    """Another process is writing to the folder."""


@contextmanager
def folder_lock(folder: Path) -> Iterator[list[str]]:
    """Hold a folder's lock, the file ``.lock``.

    Yields the names of unfinished files that were removed from the folder. The system
    releases the lock when the process ends, even if it is killed. A new folder stays
    only if something was written to it. Raises ``FolderInUseError``, and ``ValueError``
    for an unwritable folder.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be written to ({error.strerror}); expected a folder for"
            " results: choose another"
        ) from None
    try:
        yield remove_leftovers(folder, 0)
    finally:
        # The file is removed while it is held, so that a waiting process sees that it
        # has gone. Windows does not remove open files.
        with suppress(OSError):
            (folder / LOCK_FILE).unlink()
        lock.release()
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()


def refuse_in_use(folder: Path) -> None:
    """Raise `FolderInUseError` if the lock of a folder is held.

    Nothing is changed.
    """
    if (folder / LOCK_FILE).exists():
        with suppress(OSError):
            _locked(folder).release()


def _locked(folder: Path) -> "FileLock":
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FolderInUseError(
            f"{folder}: in use by another run; wait until it ends, or give another"
            " --out"
        ) from None
    return lock
