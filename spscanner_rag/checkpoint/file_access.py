"""Open, read and verify the files of a checkpoint; whatever is wrong with one is a `CheckpointError`."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
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


DIGESTS: Final = "sha256"  # the key of the object "spscanner" that holds the digests
_BLOCK_BYTES: Final = 2**20
_FILES: Final = (SAFETENSORS, TOKENIZER, WORD_VECTORS, ENCODER)
CONTENT: Final = "config"
_SHA256: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Digests:
    """The SHA-256 of each of ``files``, and of the ``content`` of ``config.json``; ``ValueError`` for others."""

    files: dict[str, str] = field(default_factory=dict)
    content: str = ""

    def __post_init__(self) -> None:
        for name, digest in self.files.items():
            if name not in _FILES:
                raise ValueError(
                    f"spscanner.{DIGESTS}.{name}: unknown file; expected {', '.join(_FILES)}: remove it"
                )
            _refuse_other(name, digest)
        if self.content:
            _refuse_other(CONTENT, self.content)

    @classmethod
    def from_config(cls, value: object) -> "Digests":
        """Read the parsed object "spscanner.sha256"."""
        if not isinstance(value, Mapping):
            raise ValueError(
                f"spscanner.{DIGESTS} is {value!r}; expected an object of file names and digests"
            )
        files = {name: digest for name, digest in value.items() if name != CONTENT}
        return cls(files, value.get(CONTENT, ""))

    @classmethod
    def of_files(cls, paths: Iterable[Path]) -> "Digests":
        """Compute the digests of files."""
        return cls({path.name: _digest(path) for path in paths})

    def check_config(self, config: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` if a parsed ``config.json`` with digests is not the one that was saved."""
        if CONTENT in config["spscanner"][DIGESTS] and digest_of_config(config) != self.content:
            raise ValueError(
                f"its content is not the one of spscanner.{DIGESTS}.{CONTENT}, so it was damaged or edited;"
                f" download or save the checkpoint again (if you changed it on purpose, remove"
                f" spscanner.{DIGESTS}.{CONTENT})"
            )

    @contextmanager
    def checking(self, path: Path) -> Iterator[Check]:
        """Check a large file in another thread while the body reads it; raise `CheckpointError` after the body.

        The body calls what it gets with the path and content of every other file before it parses it.
        """
        if path.name not in self.files:
            yield self._check_content
            return
        if not os.path.lexists(path):
            raise CheckpointError(
                f"{path}: missing, though {path.parent / CONFIG} has its SHA-256; download or save the checkpoint"
                " again"
            )
        begun, stop = Event(), Event()
        with ThreadPoolExecutor(1) as pool:
            # Without waiting it would begin late: parsing the tokenizer, the first call, keeps the interpreter.
            pool.submit(begun.set)
            digest = pool.submit(_digest, path, stop)
            begun.wait()
            try:
                yield self._check_content
            except BaseException:
                stop.set()
                raise
            self._compare(path, digest.result())

    def _check_content(self, path: Path, content: bytes) -> None:
        if path.name in self.files:
            self._compare(path, hashlib.sha256(content).hexdigest())

    def _compare(self, path: Path, got: str) -> None:
        if got != self.files[path.name]:
            raise CheckpointError(
                f"{path}: its SHA-256 is not the one in {path.parent / CONFIG}, so the file is damaged, is that of"
                " another checkpoint, or saving was interrupted; download or save the checkpoint again (if you"
                f" changed it on purpose, remove spscanner.{DIGESTS} from {CONFIG})"
            )


def digest_of_config(config: Mapping[str, Any]) -> str:
    """The SHA-256 of a parsed ``config.json`` without that entry, whatever its white space and order of keys."""
    section = config["spscanner"]
    others = {name: value for name, value in section[DIGESTS].items() if name != CONTENT}
    content = {**config, "spscanner": {**section, DIGESTS: others}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def fingerprint(folder: Path) -> str:
    """One SHA-256, in hexadecimal, of all files that decide what the checkpoint in a folder computes."""
    files = [path for path in folder.iterdir() if path.suffix in (".json", ".safetensors", ".bin")]
    content = {path.name: _digest(path) for path in sorted(files)}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _digest(path: Path, stop: Event | None = None) -> str:
    """The SHA-256 of a file, in hexadecimal, read in blocks; of its beginning once it is to stop."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        try:
            while (block := file.read(_BLOCK_BYTES)) and not (stop and stop.is_set()):
                digest.update(block)
        except OSError as error:
            raise CheckpointError(f"{path}: {error.strerror}; expected a file that can be read") from None
    return digest.hexdigest()


def _refuse_other(name: str, digest: object) -> None:
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise ValueError(
            f"spscanner.{DIGESTS}.{name} holds no SHA-256; expected 64 hexadecimal digits; download or save the"
            " checkpoint again"
        )
