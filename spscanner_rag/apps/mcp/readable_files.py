"""The files that an agent may read: those below some folders, none of them hidden."""

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from spscanner_rag.apps.mcp.open_below import open_below
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import bytes_of
from spscanner_rag.text.escaping import one_line

ReadContent = Callable[[str, bytes], TextFile]
"""Reads a document from the path and the content of its file."""

MOST_CHARACTERS = 8_000_000
"""Most characters of a document: about 2 million tokens."""


class ReadableFiles:
    """Files below some folders that are not hidden, with links resolved.

    A file is opened below its folder without following links again, so that none can be
    swapped in after the path was checked.

    Parameters
    ----------
    folders : sequence of str or Path
    read_content : callable
        Reads a document from the path and the content of its file.
    """

    def __init__(
        self, folders: Sequence[str | Path], read_content: ReadContent
    ) -> None:
        self.roots = [Path(os.path.realpath(folder)) for folder in folders]
        self._read_content = read_content
        prefixes = [re.escape(f"{root}{os.sep}") for root in self.roots]
        self._prefixes = re.compile("|".join(prefixes))

    def document(self, path: str) -> TextFile:
        """Read a document, whose path is then the shortest one that finds it again."""
        real = self.resolved(path)
        document = self._read_content(str(real), self._content(path, real))
        if len(document.text) > MOST_CHARACTERS:
            raise ValueError(
                f"{one_line(path[:200])}: got over {MOST_CHARACTERS:,} characters;"
                " expected fewer: split it"
            )
        containing = [root for root in self.roots if real.is_relative_to(root)]
        short_path = str(real.relative_to(containing[0]))
        if self.resolved(short_path) == real:
            return replace(document, path=short_path)
        return replace(document, path=str(real))

    def size(self, path: str) -> int:
        """The bytes of a document's file, with the error of `resolved`."""
        real = self.resolved(path)
        with suppress(OSError):
            return real.stat().st_size
        return 0

    def _content(self, path: str, real: Path) -> bytes:
        """The content of a file whose path was resolved."""
        root = next(root for root in self.roots if real.is_relative_to(root))
        try:
            descriptor = open_below(root, real.relative_to(root).parts)
        except OSError:
            raise self._not_found(path, "file") from None
        return bytes_of(str(real), lambda name, flags: descriptor)

    def _not_found(self, path: str, kind: str) -> ValueError:
        return ValueError(
            f"{one_line(path[:200])}: got no such {kind}; expected one in"
            f" {', '.join(map(str, self.roots))}, not hidden"
        )

    def resolved(self, path: str, *, is_folder: bool = False) -> Path:
        """Resolve the path of a file, or of a folder, that may be read.

        Others get the same error, whether or not they exist.
        """
        kind = "file"
        exists: Callable[[Path], bool] = os.path.isfile
        if is_folder:
            kind = "folder"
            exists = os.path.isdir
        if "\0" in path:
            raise self._not_found(path, kind)
        spellings = [(base, path) for base in (*self.roots, Path.cwd())]
        # What an agent writes is composed, but a name may be decomposed, as macOS
        # writes "é".
        for base in self.roots:
            spellings.append((base, spelled_as_stored(base, path)))
        for base, spelled in spellings:
            with suppress(OSError):  # a link that is replaced meanwhile
                real = Path(os.path.realpath(base / spelled))
                if self._is_visible(real) and exists(real):
                    return real
        raise self._not_found(path, kind)

    def _is_visible(self, real: Path) -> bool:
        """Whether a path is below a folder, and no part of it below that is hidden."""
        for root in self.roots:
            if not real.is_relative_to(root):
                continue
            parts = real.relative_to(root).parts
            if not any(part.startswith(".") for part in parts):
                return True
        return False

    def without_roots(self, note: str) -> str:
        """A note with paths as an agent names them."""
        return self._prefixes.sub("", note)


def spelled_as_stored(folder: Path, path: str) -> str:
    """A path below a folder, with each name as the file system spells it.

    Names are the same if their composed forms are. One that is not found stays, as do
    paths that are not below the folder.
    """
    if path.isascii() or "\0" in path:
        return path
    spelled = Path()
    for name in Path(path).parts:
        if name in ("..", os.sep):
            return path
        composed = unicodedata.normalize("NFC", name)
        stored = name
        with suppress(OSError):
            for entry in os.listdir(folder / spelled):
                if unicodedata.normalize("NFC", entry) == composed:
                    stored = entry
        spelled /= stored
    return str(spelled)
