"""SHA-256 digests of the files of a checkpoint, stored in its ``config.json``."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from spscanner_rag.checkpoint.bounded_files import open_file
from spscanner_rag.checkpoint.errors import faults_of
from spscanner_rag.checkpoint.file_names import CONFIG

DIGESTS: Final = "sha256"  # the key of the object "spscanner" that holds the digests
CONTENT: Final = "config"  # the key of the digest of ``config.json`` itself


class Digests:
    """The SHA-256 digests in ``config.json``: of files, and of itself.

    That of itself is under `CONTENT`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Read a parsed ``config.json``.

        ``ValueError`` if its digests are not an object, or it was changed.
        """
        self.checked: list[str] = []  # names of the files that were compared
        self._of = {} if config is None else config["spscanner"].get(DIGESTS, {})
        if not isinstance(self._of, Mapping):
            raise ValueError(
                f"spscanner.{DIGESTS} is {self._of!r}; expected an object of file names"
                " and digests"
            )
        if config is not None and CONTENT in self._of:
            self._compare(CONTENT, digest_of_config(config), CONFIG)

    def check(self, path: Path, content: bytes | None = None) -> None:
        """Raise `CheckpointError` if a file is not what was saved.

        ``content`` is that of the file, if it is already read.
        """
        if path.name in self._of:
            digest = (
                file_digest(path)
                if content is None
                else hashlib.sha256(content).hexdigest()
            )
            with faults_of(path):
                self._compare(path.name, digest, path.name)

    def _compare(self, name: str, digest: str, file: str) -> None:
        if digest != self._of[name]:
            raise ValueError(
                f"its SHA-256 is not spscanner.{DIGESTS}.{name} of {CONFIG}, so it was"
                " damaged or edited, or is another checkpoint's; download or save the"
                " checkpoint again (if you changed it on purpose, remove that entry)"
            )
        self.checked.append(file)


def digest_of_config(config: Mapping[str, Any]) -> str:
    """The SHA-256 of a parsed ``config.json`` without `CONTENT`.

    White space and the order of keys do not count.
    """
    section = config["spscanner"]
    others = {
        name: value for name, value in section[DIGESTS].items() if name != CONTENT
    }
    content = {**config, "spscanner": {**section, DIGESTS: others}}
    return hashlib.sha256(
        json.dumps(content, sort_keys=True).encode("ascii")
    ).hexdigest()


def fingerprint(folder: Path) -> str:
    """One SHA-256, in hexadecimal, of all files that decide what a folder computes."""
    files = [
        path
        for path in folder.iterdir()
        if path.suffix in (".json", ".safetensors", ".bin")
    ]
    content = {path.name: file_digest(path) for path in sorted(files)}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
