"""A folder of entries that several programs share, within a bound of bytes.

Only files with the names of entries are read, replaced or removed, so that the folder
may hold other files too. An entry begins with a digest of its name and its content.
What is no regular file of this user, or is not what was written, counts as missing.
"""

import os
import re
import stat
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, NamedTuple
from uuid import uuid4

from spscanner_rag.system.whole_files import one_at_a_time

MOST_BYTES: Final = 2**29
"""Most bytes of all entries; the least recently used are removed."""

MOST_ENTRIES: Final = 10_000

EntryKind = Literal["text", "vectors"]

_MARK: Final = b"spscanner entry 1\n"
_HEAD_BYTES: Final = len(_MARK) + sha256().digest_size
# also the names that earlier versions wrote, so that these entries are removed in time
_NAME = re.compile(r"(text|vectors)-[0-9a-f]{64}\.(entry|json\.gz|npz)")
_UNFINISHED = re.compile(r"\.(text|vectors)-[0-9a-f]{64}\.entry\.[0-9a-f]{32}\.part")
_SECONDS_OF_UNFINISHED = 3600.0  # older ones are of programs that were killed
_LONGEST_WAIT = 1.0  # seconds, for another program that removes entries

_ONLY_USER = 0o600
_OTHER_USERS = 0o077
# no link is followed, and a pipe without a writer does not block
_READING = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_WRITING = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)


class _StoredEntry(NamedTuple):
    used: float  # the time, for sorting
    size: int
    path: str


class EntryFolder:
    """Keeps contents under names, for this user only.

    Nothing raises an error: what cannot be kept is not kept, and an entry with any
    fault counts as missing.

    Parameters
    ----------
    path : Path
        The folder, which is created when something is first kept.
    most_bytes : int, default `MOST_BYTES`
        Most bytes of all entries together.

    Examples
    --------
    >>> import tempfile
    >>> folder = EntryFolder(Path(tempfile.mkdtemp()) / "cache")
    >>> name = entry_name("text", b"key")
    >>> folder.put(name, b"content")
    >>> folder.get(name)
    b'content'
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.most_bytes = most_bytes

    def get(self, name: str) -> bytes | None:
        """Return the content of an entry, and mark it as the last used."""
        try:
            stored = self._stored(name)
        except (OSError, ValueError, MemoryError):
            return None
        if stored is None or stored[:_HEAD_BYTES] != _head_of(
            name, stored[_HEAD_BYTES:]
        ):
            return None
        return stored[_HEAD_BYTES:]

    def put(self, name: str, content: bytes) -> None:
        """Keep a content, for which the entries used longest ago make room."""
        size = _HEAD_BYTES + len(content)
        if size > self.most_bytes:
            return
        unfinished = self.path / f".{name}.{uuid4().hex}.part"
        with suppress(OSError, ValueError):
            self._make_private_folder()
            try:
                descriptor = os.open(unfinished, _WRITING, _ONLY_USER)
                with open(descriptor, "wb") as file:
                    file.write(_head_of(name, content))
                    file.write(content)
                with one_at_a_time(self.path, _LONGEST_WAIT):
                    self._make_room()
                    os.replace(unfinished, self.path / name)
            finally:
                unfinished.unlink(missing_ok=True)

    def _stored(self, name: str) -> bytes | None:
        """The bytes of an entry's file, or None if they are not an entry's."""
        path = self.path / name
        with open(os.open(path, _READING), "rb") as file:
            status = os.fstat(file.fileno())
            fits = _HEAD_BYTES <= status.st_size <= self.most_bytes
            if not fits or not _is_file_of_user(status):
                return None
            stored = file.read(status.st_size + 1)
            if len(stored) != status.st_size:
                return None
            with suppress(OSError):
                os.utime(file.fileno() if os.utime in os.supports_fd else path)
        return stored

    def _make_private_folder(self) -> None:
        """Create the folder for this user only.

        A folder that has nothing but entries becomes private as well.
        """
        self.path.mkdir(0o700, parents=True, exist_ok=True)
        status = self.path.stat()
        if not status.st_mode & _OTHER_USERS or not _is_of_user(status):
            return
        for name in os.listdir(self.path):
            if not _NAME.fullmatch(name) and not _UNFINISHED.fullmatch(name):
                return
        self.path.chmod(0o700)

    def _make_room(self) -> None:
        """Remove entries until all fit, with the one that is being written."""
        entries: list[_StoredEntry] = []
        total = 0
        for file in os.scandir(self.path):
            is_unfinished = _UNFINISHED.fullmatch(file.name) is not None
            if not is_unfinished and not _NAME.fullmatch(file.name):
                continue
            status = file.stat(follow_symlinks=False)
            if not _is_file_of_user(status):
                continue
            is_old = time.time() - status.st_mtime > _SECONDS_OF_UNFINISHED
            if is_unfinished and is_old:
                _remove(file.path)
                continue
            total += status.st_size
            if not is_unfinished:
                used = status.st_mtime
                entries.append(_StoredEntry(used, status.st_size, file.path))
        excess = len(entries) + 1 - MOST_ENTRIES
        for entry in sorted(entries):
            if total <= self.most_bytes and excess <= 0:
                break
            _remove(entry.path)
            total -= entry.size
            excess -= 1


def entry_name(kind: EntryKind, key: bytes) -> str:
    """Return the name of the entry for a key.

    Examples
    --------
    >>> entry_name("text", b"key")
    'text-2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683.entry'
    """
    return f"{kind}-{sha256(key).hexdigest()}.entry"


def _head_of(name: str, content: bytes) -> bytes:
    """What stands before a content, which differs under another name."""
    digest = sha256(name.encode())
    digest.update(content)
    return _MARK + digest.digest()


def _is_file_of_user(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and _is_of_user(status)


def _is_of_user(status: os.stat_result) -> bool:
    """Whether a file is this user's, where the system has users' numbers."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _remove(path: str) -> None:
    with suppress(OSError):  # another program may have removed it
        os.unlink(path)
