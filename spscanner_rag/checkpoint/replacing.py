"""Replace a checkpoint's files in an existing folder: at every moment the old ones or the new ones can be loaded.

Files cannot be replaced together. Whole folders could be exchanged, but a folder may also hold files that others
write, or be a program's working folder or a mount point. So a complete new checkpoint first gets its place within
the folder, by one rename; from then on `current_files` finds it there. Its files then replace the old ones, and
the place is removed. A killed program leaves the place behind, and the next save completes what it had begun.
"""

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from spscanner_rag.checkpoint.config_file import CONFIG
from spscanner_rag.checkpoint.tensor_files import SAFETENSORS
from spscanner_rag.checkpoint.tokenizer_file import TOKENIZER
from spscanner_rag.checkpoint.whole_file import sync_folder
from spscanner_rag.checkpoint.word_vectors_file import WORD_VECTORS

if sys.platform != "win32":
    import fcntl

FILES: Final = (CONFIG, SAFETENSORS, TOKENIZER, WORD_VECTORS)
_PLACE: Final = ".new-checkpoint"


def current_files(folder: Path) -> Path:
    """Return the folder that a checkpoint is read from: the given one, unless a save into it was interrupted."""
    place = folder / _PLACE
    return place if (place / CONFIG).is_file() else folder


def replace_files(complete: Path, folder: Path) -> None:
    """Replace the files of the checkpoint in ``folder`` by those of another folder within it, which disappears.

    If several programs save to the folder, each waits for the one before. Raises ``OSError`` if saving fails; what
    can be loaded then is the old checkpoint or the new one.
    """
    with _one_at_a_time(folder):
        _finish(folder)
        for path in complete.iterdir():
            fsync_file(path)
        for name in FILES:  # a file that the new checkpoint does not replace stays, for example the tokenizer
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
    for name in FILES:
        if (place / name).exists():
            second = place / f"{name}.part"
            second.unlink(missing_ok=True)
            _link(place / name, second)
            second.replace(folder / name)
    sync_folder(folder)
    done = folder / f"{_PLACE}-{uuid.uuid4().hex}.partial"
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
