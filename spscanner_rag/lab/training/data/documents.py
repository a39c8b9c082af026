"""Training documents with their questions in memory and their texts in a file."""

import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import telling_of_full_disks
from spscanner_rag.lab.evidence.questions import Document


class DocumentStore:
    """Documents by number, in the order given; a text is read from disk when it is asked for.

    The file of texts has no name, so that it vanishes even when the process is killed.
    """

    def __init__(self, documents: Iterable[Document], folder: Path | None = None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._texts = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the store
        weakref.finalize(self, self._texts.close)
        # without text; its first byte, its length in bytes
        self._entries: list[tuple[Document, int, int]] = []
        position = 0
        with telling_of_full_disks(folder or Path(tempfile.gettempdir())):
            for document in documents:
                encoded = document.text.encode("utf-8", "surrogatepass")  # lone surrogates are text too
                self._texts.write(encoded)
                self._entries.append((replace(document, text=""), position, len(encoded)))
                position += len(encoded)
            self._texts.flush()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Document]:
        return (self.document(number) for number in range(len(self)))

    @property
    def bytes(self) -> int:
        """The length of all texts."""
        return sum(length for _, _, length in self._entries)

    def leave_out(self, shared: Collection[tuple[str, str]]) -> None:
        """Forget documents, given by source and id; the others are renumbered."""
        self._entries = [entry for entry in self._entries if (entry[0].source, entry[0].doc_id) not in shared]

    def without_text(self, number: int) -> Document:
        """Document ``number`` with an empty text, which spares reading it from disk."""
        return self._entries[number][0]

    def document(self, number: int) -> Document:
        """Document ``number`` with its text."""
        document, start, length = self._entries[number]
        # not seek and read: forked processes share the file's position
        text = os.pread(self._texts.fileno(), length, start).decode("utf-8", "surrogatepass")
        return replace(document, text=text)


TEXT_SUFFIXES = (".txt", ".txt.gz", ".txt.xz")
