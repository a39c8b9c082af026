"""SHA-256 of a checkpoint's files, kept in its ``config.json`` and checked when they are read.

A file of at most 256 MiB has one digest, the one that ``sha256sum`` shows. A larger one has a list with the digest
of every 256 MiB of it, so that several threads can compute them. ``config.json`` cannot hold the digest of its own
bytes, so the entry "config" is the digest of its parsed content without that entry.
"""

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Final

from spscanner_rag.checkpoint.file_access import (
    CONFIG,
    ENCODER,
    SAFETENSORS,
    TOKENIZER,
    WORD_VECTORS,
    Check,
    CheckpointError,
    first_line,
    open_file,
)

DIGESTS: Final = "sha256"
"""The key of the object "spscanner" that holds the digests."""

_PIECE_BYTES: Final = 2**28
_BLOCK_BYTES: Final = 2**24
_MOST_THREADS: Final = 8
_FILES: Final = (SAFETENSORS, TOKENIZER, WORD_VECTORS, ENCODER)
_CONTENT: Final = "config"
_SHA256: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Digests:
    """The digests that a checkpoint's ``config.json`` has for its files.

    ``files`` has the SHA-256 of each file's pieces, ``content`` that of ``config.json``, in hexadecimal; both may
    be empty. Anything else is a ``ValueError``, which names the key.
    """

    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    content: str = ""

    def __post_init__(self) -> None:
        """Refuse what no digest of a checkpoint looks like."""
        for name, pieces in self.files.items():
            if name not in _FILES:
                raise ValueError(
                    f"spscanner.{DIGESTS}.{name}: unknown file; expected {', '.join(_FILES)}: remove it"
                )
            if not pieces or not all(isinstance(p, str) and _SHA256.fullmatch(p) for p in pieces):
                raise ValueError(
                    f"spscanner.{DIGESTS}.{name} holds no SHA-256; expected 64 hexadecimal digits, or a list of"
                    " them; download or save the checkpoint again"
                )
        if not isinstance(self.content, str):
            raise ValueError(
                f"spscanner.{DIGESTS}.{_CONTENT} holds no SHA-256; expected 64 hexadecimal digits; download or"
                " save the checkpoint again"
            )

    @classmethod
    def from_config(cls, value: object) -> "Digests":
        """Read the parsed object "spscanner.sha256"."""
        if not isinstance(value, Mapping):
            raise ValueError(
                f"spscanner.{DIGESTS} is {value!r}; expected an object of file names and digests"
            )
        files = {name: v for name, v in value.items() if name != _CONTENT}
        pieces = {name: tuple(v) if isinstance(v, list) else (v,) for name, v in files.items()}
        return cls(pieces, value.get(_CONTENT, ""))

    @classmethod
    def of_files(cls, paths: Iterable[Path]) -> "Digests":
        """Compute the digests of files."""
        return cls({path.name: tuple(_pieces_of(path)) for path in paths})

    def to_config(self) -> dict[str, Any]:
        """Return the object to write; `from_config` reads it back."""
        return {name: v[0] if len(v) == 1 else list(v) for name, v in self.files.items()}

    def check_config(self, config: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` if a parsed ``config.json`` with digests is not the one that was saved."""
        if _CONTENT in config["spscanner"][DIGESTS] and _digest_of_config(config) != self.content:
            raise ValueError(
                f"its content is not the one of spscanner.{DIGESTS}.{_CONTENT}, so it was damaged or edited;"
                f" download or save the checkpoint again (if you changed it on purpose, remove"
                f" spscanner.{DIGESTS}.{_CONTENT})"
            )

    @contextmanager
    def checking(self, path: Path) -> Iterator[Check]:
        """Check a large file in other threads while the body reads it; raise `CheckpointError` after the body.

        The body calls what it gets with the path and the content of every other file before it parses it: a wrong
        digest is a `CheckpointError`. An error in the body stops the check of ``path`` and is the one raised.
        """
        if path.name not in self.files:
            yield self._check_content
            return
        if not os.path.lexists(path):
            raise CheckpointError(
                f"{path}: missing, though {path.parent / CONFIG} has its SHA-256; download or save the checkpoint"
                " again"
            )
        stop = Event()
        with _mapped(path) as content, _pool_for(content) as pool:
            pieces = _submit(pool, content, stop)
            try:
                yield self._check_content
            except BaseException:
                stop.set()
                raise
            self._compare(path, [piece.result() for piece in pieces])

    def _check_content(self, path: Path, content: bytes) -> None:
        if path.name in self.files:
            self._compare(path, [_digest(content, start, Event()) for start in _starts(content)])

    def _compare(self, path: Path, got: list[str]) -> None:
        if tuple(got) != self.files[path.name]:
            raise CheckpointError(
                f"{path}: its SHA-256 is not the one in {path.parent / CONFIG}, so the file is damaged, is that of"
                " another checkpoint, or saving was interrupted; download or save the checkpoint again (if you"
                f" changed it on purpose, remove spscanner.{DIGESTS} from {CONFIG})"
            )


def with_own_digest(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with digests of files as JSON holds it, and the digest of its content added."""
    parsed: dict[str, Any] = json.loads(json.dumps(config))
    parsed["spscanner"][DIGESTS][_CONTENT] = _digest_of_config(parsed)
    return parsed


def _digest_of_config(config: Mapping[str, Any]) -> str:
    """The SHA-256 of a parsed ``config.json`` without that entry, whatever its white space and order of keys."""
    section = config["spscanner"]
    others = {name: value for name, value in section[DIGESTS].items() if name != _CONTENT}
    content = {**config, "spscanner": {**section, DIGESTS: others}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def fingerprint(folder: Path) -> str:
    """One SHA-256, in hexadecimal, of all files that decide what the checkpoint in a folder computes."""
    files = [path for path in folder.iterdir() if path.suffix in (".json", ".safetensors", ".bin")]
    content = {path.name: _pieces_of(path) for path in sorted(files)}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _pieces_of(path: Path) -> list[str]:
    """The digests of a file's pieces, computed by as many threads as there are processors."""
    with _mapped(path) as content, _pool_for(content) as pool:
        return [piece.result() for piece in _submit(pool, content, Event())]


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """A file's content. Mapped, one call hashes a block without waiting for the interpreter."""
    with open_file(path) as file:
        try:
            content = (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.seek(0, os.SEEK_END) else b""
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise CheckpointError(f"{path}: {reason}; expected a file that can be read") from None
    with nullcontext(content) if isinstance(content, bytes) else content:  # an empty file cannot be mapped
        yield content


def _pool_for(content: mmap.mmap | bytes) -> ThreadPoolExecutor:
    pieces = max(1, -(-len(content) // _PIECE_BYTES))
    return ThreadPoolExecutor(min(pieces, os.cpu_count() or 1, _MOST_THREADS))


def _submit(pool: ThreadPoolExecutor, content: mmap.mmap | bytes, stop: Event) -> list[Future[str]]:
    """Begin to compute the digests of a file's pieces, and wait until the first thread has begun.

    Without that it would begin late: the loader's first call, which parses the tokenizer, keeps the interpreter.
    """
    begun = Event()
    pool.submit(begun.set)
    pieces = [pool.submit(_digest, content, start, stop) for start in _starts(content)]
    begun.wait()
    return pieces


def _starts(content: mmap.mmap | bytes) -> range:
    """The first bytes of a file's pieces."""
    return range(0, len(content) or 1, _PIECE_BYTES)


def _digest(content: mmap.mmap | bytes, start: int, stop: Event) -> str:
    """The digest of the piece that starts at a byte of a file."""
    digest = hashlib.sha256()
    end = min(start + _PIECE_BYTES, len(content))
    for at in range(start, end, _BLOCK_BYTES):
        if stop.is_set():
            break
        size = min(_BLOCK_BYTES, end - at)
        with memoryview(content) as whole, whole[at : at + size] as block:
            digest.update(block)
        if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") and at % mmap.PAGESIZE == 0:
            content.madvise(mmap.MADV_DONTNEED, at, size)  # the process does not hold what it has read
    return digest.hexdigest()
