"""Open and read the files of a checkpoint; whatever is wrong with one is a `CheckpointError`."""

import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final

from safetensors import SafetensorError
from safetensors.numpy import load

from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.text.escaping import unbroken

CONFIG: Final = "config.json"
SAFETENSORS: Final = "model.safetensors"
SAFETENSORS_INDEX: Final = "model.safetensors.index.json"
PICKLED: Final = "pytorch_model.bin"
TOKENIZER: Final = "tokenizer.json"
WORD_VECTORS: Final = "word_vectors.safetensors"
ENCODER: Final = "encoder.safetensors"

Check = Callable[[Path, bytes], None]
"""Called with the path and the content of a file before the content is parsed; see `Digests.checking`."""

LARGEST_JSON: Final = 2**24
"""Bytes of a ``config.json`` or an index of shards; those of the largest published models have less than 2**20."""

_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_MESSAGE_START, _MESSAGE_END = 1400, 600  # characters of a message that are kept


class CheckpointError(ValueError):
    """A checkpoint that cannot be found, read, verified or written, in one line of bounded length."""

    def __init__(self, message: str) -> None:
        message = unbroken(message)
        if len(message) > _MESSAGE_START + _MESSAGE_END:
            message = f"{message[:_MESSAGE_START]} [...] {message[-_MESSAGE_END:]}"
        super().__init__(message)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's type if it has no message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; refuse what is no regular file: opening a named pipe would wait for ever."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind != stat.S_IFREG:
            raise CheckpointError(f"{path}: {_KINDS.get(kind, 'a special file')}; expected a regular file")
        return path.open("rb")
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}; expected a file that can be read") from None


def refuse_pointer(path: Path) -> None:
    """Refuse a git-LFS pointer in place of a file that a library will open, and what is no regular file."""
    with open_file(path) as file:
        _refuse_pointer(path, file.read(len(_LFS_POINTER)))


def read_bytes(path: Path, largest: int) -> bytes:
    """Read a file of at most ``largest`` bytes; refuse a git-LFS pointer in place of the file."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise CheckpointError(
                f"{path}: {size:,} bytes; expected at most {largest:,}: it is no file of a checkpoint"
            )
        try:
            content = file.read(size)
        except OSError as error:
            raise CheckpointError(f"{path}: {error.strerror}; expected a file that can be read") from None
    _refuse_pointer(path, content)
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object, in which no object has a key twice."""
    content = read_bytes(path, LARGEST_JSON)
    try:
        value = json.loads(content, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({first_line(error)}); expected a JSON object") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: a JSON {type(value).__name__}; expected an object")
    return value


def _refuse_pointer(path: Path, content: bytes) -> None:
    if content.startswith(_LFS_POINTER):
        raise CheckpointError(f"{path}: a git-LFS pointer, not the file itself; run `git lfs pull` there")


def _without_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:100]!r} is there twice: remove one")
        found[key] = value
    return found


_LARGEST: Final = 2**31  # bytes: two million words of 1,024 numbers
_NEXT: Final = "download it again"


def read_word_vectors(path: Path, check: Check | None = None) -> WordVectors:
    """Read a table of word vectors after a `Digests.checking`; `CheckpointError` if it is missing or damaged."""
    content = read_bytes(path, _LARGEST)
    if check is not None:
        check(path, content)
    try:
        return WordVectors.from_arrays(load(content))
    except SafetensorError as error:
        fault = f"truncated, or not a safetensors file ({first_line(error)})"
    except KeyError as error:  # a dtype that numpy does not have
        fault = f"a tensor is {error.args[0]}; expected int8, uint8 and floating-point that numpy has"
    except ValueError as error:
        fault = str(error)
    raise CheckpointError(f"{path}: {fault}; {_NEXT}")
