"""Keeps texts of files and vectors of sentences for later commands.

They are in the user's cache folder.

The cache is optional: an entry that is damaged, missing or of another version is made
again, and if the folder cannot be written, nothing is kept.
"""

import gzip
import json
import os
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from spscanner_rag import __version__, files
from spscanner_rag.files.documents import (
    STANDARD_INPUT,
    PageStart,
    PlaceStart,
    TextFile,
    block_of,
)
from spscanner_rag.files.formats import format_named_by
from spscanner_rag.files.reading import bytes_of, read_bytes
from spscanner_rag.system.whole_files import write_whole

if TYPE_CHECKING:
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors

MOST_BYTES = 2**29
"""Most bytes of all entries; the least recently used are removed."""

_DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile, zlib.error)


def cache_folder() -> Path:
    """Return ``$SPSCANNER_CACHE``, else ``spscanner`` in the user's cache folder."""
    if folder := os.environ.get("SPSCANNER_CACHE"):
        return Path(folder)
    home = Path.home()
    defaults = {
        "darwin": home / "Library" / "Caches",
        "win32": home / "AppData" / "Local",
    }
    user_cache = defaults.get(sys.platform, home / ".cache")
    if folder := os.environ.get("XDG_CACHE_HOME"):
        user_cache = Path(folder)
    return user_cache / "spscanner"


@cache
def _readers() -> str:
    """Identify the code of the readers.

    It has the version and, for changes between two versions, the newest file.
    """
    sources = Path(str(files.__file__)).parent.rglob("*.py")
    newest = max(source.stat().st_mtime_ns for source in sources)
    return f"{__version__} {newest}"


class ReadCache:
    """Keeps texts and vectors by digests.

    A text has that of its file, vectors those of the encoder and of the sentences.

    Parameters
    ----------
    folder : Path
        Created when something is first kept, readable by the user only.
    most_bytes : int, default `MOST_BYTES`
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    def read(
        self, path: str | Path, *, progress: Callable[[int, int], None] | None = None
    ) -> TextFile:
        """Read as `spscanner_rag.files.read`, with its errors.

        Plain text and standard input are not kept.
        """
        path = str(path)
        data = bytes_of(path)
        if path == STANDARD_INPUT or format_named_by(path) == "text":
            return read_bytes(path, data)
        reader = f"{_readers()} {Path(path).suffix.lower()} "
        digest = sha256(reader.encode() + data).hexdigest()
        entry = self.folder / f"text-{digest}.json.gz"
        with suppress(*_DAMAGED):
            return _document_of(path, _used(entry))
        document = read_bytes(path, data, progress=progress)
        words = None
        if document.words is not None:
            words = document.words.tolist()
        content = [
            document.text,
            document.blocks,
            document.pages,
            document.notes,
            words,
            document.places,
            dict(document.metadata),
        ]
        self._keep(entry, gzip.compress(json.dumps(content).encode(), 1, mtime=0))
        return document

    def get(self, encoder: str, key: str) -> "SentenceVectors | None":
        """Return an encoder's vectors of the sentences with this digest.

        None if they are not kept.
        """
        from spscanner_rag.encoder.sentence_vectors import SentenceVectors

        entry = self._entry_of(encoder, key)
        with (
            suppress(*_DAMAGED),
            np.load(BytesIO(_used(entry)), allow_pickle=False) as arrays,
        ):
            rows = arrays["rows"]
            scales = arrays["scales"]
            fit = rows.ndim == 2 and scales.shape == rows.shape[:1]
            if fit and (rows.dtype, scales.dtype) == (np.int8, np.float16):
                return SentenceVectors(rows, scales)
        return None

    def put(self, encoder: str, key: str, vectors: "SentenceVectors") -> None:
        """Keep the vectors of a text's sentences."""
        content = BytesIO()
        np.savez(content, rows=vectors.rows, scales=vectors.scales)
        self._keep(self._entry_of(encoder, key), content.getvalue())

    def _entry_of(self, encoder: str, key: str) -> Path:
        name = sha256(f"{__version__} {encoder} {key}".encode()).hexdigest()
        return self.folder / f"vectors-{name}.npz"

    def _keep(self, entry: Path, content: bytes) -> None:
        if len(content) > self.most_bytes:
            return
        with suppress(OSError):
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            self._make_room(len(content))
            write_whole(entry, content)

    def _make_room(self, size_of_new: int) -> None:
        """Remove the least recently used entries until a new one fits."""
        entries: list[tuple[float, int, str]] = []
        for file in os.scandir(self.folder):
            entries.append((file.stat().st_mtime, file.stat().st_size, file.path))
        total = sum(size for _, size, _ in entries) + size_of_new
        for _, size, path in sorted(entries):
            if total > self.most_bytes:
                total -= size
                with suppress(OSError):  # another program may have removed it
                    os.unlink(path)


def _document_of(path: str, content: bytes) -> TextFile:
    """The text of a file, with its pages, from the content of an entry."""
    content_parts = json.loads(gzip.decompress(content))
    text, blocks, pages, notes, words, places, metadata = content_parts
    if words is not None:
        words = np.array(words, np.int32).reshape(-1, 6)
    return TextFile(
        path,
        str(text),
        tuple(map(block_of, blocks)),
        tuple(PageStart(*page) for page in pages),
        tuple(notes),
        words,
        tuple(PlaceStart(*place) for place in places),
        metadata,
    )


def _used(entry: Path) -> bytes:
    """Read an entry, and mark it as the most recently used."""
    with suppress(OSError):
        os.utime(entry)
    return entry.read_bytes()
