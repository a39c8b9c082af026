"""SHA-256 of a checkpoint's files, kept in its ``config.json`` and checked when they are read.

The entry "config" is the digest of the parsed content of ``config.json`` without that entry.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
    open_file,
)

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
        """Refuse what no digest of a checkpoint looks like."""
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
