"""Keeps texts of files and vectors of sentences for later commands.

They are in the user's cache folder.

The cache is optional: an entry that is damaged, missing or of another version is made
again, and if the folder cannot be written, nothing is kept.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_rag import __version__, files
from spscanner_rag.apps.cache.entries import MOST_BYTES, EntryFolder, entry_name
from spscanner_rag.apps.cache.text_entries import content_of_text, text_of
from spscanner_rag.files.documents import STANDARD_INPUT, TextFile
from spscanner_rag.files.formats import format_named_by
from spscanner_rag.files.reading import bytes_of, read_bytes

if TYPE_CHECKING:
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors


def cache_folder() -> Path | None:
    """Return ``$SPSCANNER_CACHE``, else ``spscanner`` in the user's cache folder.

    None for a user without a home folder.
    """
    if folder := os.environ.get("SPSCANNER_CACHE"):
        return Path(folder)
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "spscanner"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    defaults = {
        "darwin": home / "Library" / "Caches",
        "win32": home / "AppData" / "Local",
    }
    return defaults.get(sys.platform, home / ".cache") / "spscanner"


def user_cache() -> "ReadCache | None":
    """Return the cache in the user's folder, or None without such a folder."""
    folder = cache_folder()
    return None if folder is None else ReadCache(folder)


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
        Created when something is first kept, readable by the user only. It may hold
        other files, which are left alone.
    most_bytes : int, default `MOST_BYTES`
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._entries = EntryFolder(folder, most_bytes)

    def read(
        self,
        path: str | Path,
        *,
        progress: Callable[[int, int], None] | None = None,
        ocr: str = "",
    ) -> TextFile:
        """Read as `spscanner_rag.files.read`, with its errors.

        Plain text and standard input are not kept.
        """
        path = str(path)
        return self.read_bytes(path, bytes_of(path), progress=progress, ocr=ocr)

    def read_bytes(
        self,
        path: str,
        data: bytes,
        *,
        progress: Callable[[int, int], None] | None = None,
        ocr: str = "",
    ) -> TextFile:
        """Read as `spscanner_rag.files.reading.read_bytes`, with its errors."""
        if path == STANDARD_INPUT or format_named_by(path) == "text":
            return read_bytes(path, data)
        reader = f"{_readers()} {Path(path).suffix.lower()} {ocr}"
        digest = sha256(reader.encode("utf-8", "surrogatepass") + data).digest()
        name = entry_name("text", digest)
        content = self._entries.get(name)
        if content is not None:
            stored = text_of(path, content)
            if stored is not None:
                return stored
        document = read_bytes(path, data, progress=progress, ocr=ocr)
        content = content_of_text(document)
        if content is not None:
            self._entries.put(name, content)
        return document

    def get(self, encoder: str, key: str) -> "SentenceVectors | None":
        """Return an encoder's vectors of the sentences with this digest.

        None if they are not kept.
        """
        from spscanner_rag.apps.cache.vector_entries import vectors_of

        content = self._entries.get(_vectors_name(encoder, key))
        return None if content is None else vectors_of(content)

    def put(self, encoder: str, key: str, vectors: "SentenceVectors") -> None:
        """Keep the vectors of a text's sentences."""
        from spscanner_rag.apps.cache.vector_entries import content_of_vectors

        self._entries.put(_vectors_name(encoder, key), content_of_vectors(vectors))


def _vectors_name(encoder: str, key: str) -> str:
    return entry_name("vectors", f"{__version__} {encoder} {key}".encode())
