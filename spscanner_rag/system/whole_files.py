"""Write files completely or not at all.

A temporary file replaces the target once it is complete. Unfinished files that killed
programs leave behind are removed later.
"""

import errno
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

if sys.platform != "win32":
    import fcntl

_LEFTOVER = re.compile(r"\..+[.-][0-9a-f]{32}\.part(ial)?")
"""Names of unfinished files and checkpoint folders; no two programs use the same
name."""

_SECONDS_BETWEEN_TRIES = 0.01  # to get a lock

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The errors of a full disk."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write bytes, or a text as UTF-8, completely or not at all.

    Links are followed, and a file keeps its permissions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "notes.txt"), "all of it")
    ...     Path(folder, "notes.txt").read_text()
    'all of it'
    """
    data = content.encode() if isinstance(content, str) else content
    if is_special(path):
        path.write_bytes(data)
        return
    target = path.resolve()
    # A name that nobody else uses.
    unfinished = target.with_name(f".{target.name[:50]}.{uuid4().hex}.part")
    with replacing(target, unfinished), unfinished.open("xb") as file:
        # Before the content is written, so that nobody else can read it.
        if target.exists():
            shutil.copymode(target, unfinished)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of an unfinished file that becomes ``path`` if the block succeeds.

    This is for a writer that runs for long. A killed program leaves ``NAME.part``
    behind, and the next attempt replaces it, so only one program may write the same
    file at a time. An existing file keeps its permissions.
    """
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)  # may also be a link that leads elsewhere
    with replacing(path, unfinished):
        yield unfinished
        fsync_file(unfinished)
        if path.exists():
            shutil.copymode(path, unfinished)


def remove_leftovers(folder: Path, older_than: float = 3600.0) -> list[str]:
    """Remove unfinished files of a folder and return their names.

    Only those are removed that have not changed for ``older_than`` seconds.
    """
    names: list[str] = []
    with suppress(OSError):  # no such folder, or one that cannot be listed
        names = [name for name in os.listdir(folder) if _LEFTOVER.fullmatch(name)]
    limit = time.time() - older_than
    removed: list[str] = []
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
    """Make a file's content reach the disk, before a rename makes the file count."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def one_at_a_time(folder: Path, seconds: float = math.inf) -> Iterator[None]:
    """Wait until nobody else is in such a block for the folder.

    On a system without such locks, do not wait. A kill releases the lock.
    ``TimeoutError`` if somebody else is in it for ``seconds``.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, seconds)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, seconds: float) -> None:
    """Lock an open folder, if its file system has locks."""
    if seconds == math.inf:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        return
    limit = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > limit:
                raise TimeoutError("somebody else has the lock of a folder") from None
            time.sleep(_SECONDS_BETWEEN_TRIES)
        except OSError:
            return
        else:
            return


@contextmanager
def telling_of_full_disks(path: Path) -> Iterator[None]:
    """Turn a full disk's error into one that names the file and says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        explained = OSError(
            f"{path}: cannot be written ({error.strerror}); what it held before is"
            " still there: make room, then give the same command again"
        )
        explained.errno = error.errno
        raise explained from None


def is_special(path: Path) -> bool:
    """True for a device, a named pipe or a folder, which has no content to protect."""
    return path.exists() and not path.is_file()


@contextmanager
def replacing(target: Path, unfinished: Path) -> Iterator[None]:
    """Let an unfinished file replace the target after the block.

    After an error, remove it instead.
    """
    try:
        with telling_of_full_disks(target):
            yield
            os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a replacement survive a power failure, if the system can sync a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
