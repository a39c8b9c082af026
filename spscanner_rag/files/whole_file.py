"""Files written whole or not at all: a temporary file replaces the target once it is complete."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_file(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Give a long-running writer the path of an unfinished file, which becomes ``path`` if the block succeeds.

    The unfinished file is ``NAME.part`` in the folder of ``path``, which must exist. A killed program leaves it
    behind, and the next attempt overwrites it, so only one program may write the same file at a time. With
    ``shared`` each writer has an unfinished file of its own: the last one wins, and a killed one's file stays. A
    link is replaced.
    """
    unfinished = _own_unfinished(path) if shared else path.with_name(f"{path.name}.part")
    with _replacing(path, unfinished):
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())


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
    unfinished = _own_unfinished(target)
    with _replacing(target, unfinished), unfinished.open("xb") as file:
        if target.exists():  # before the text is in the file, so that nobody else can read it
            shutil.copymode(target, unfinished)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def is_special(path: Path) -> bool:
    """Whether a path is a device, a named pipe or a folder: there is no content to protect."""
    return path.exists() and not path.is_file()


def _own_unfinished(target: Path) -> Path:
    return target.with_name(f".{target.name[:50]}.{uuid4().hex}.part")


@contextmanager
def _replacing(target: Path, unfinished: Path) -> Iterator[None]:
    """Let an unfinished file take the place of the target after the block, or remove it after an error."""
    try:
        yield
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
