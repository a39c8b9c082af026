"""The documents of a training run, whose texts stay on disk."""

import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from spscanner_lab.evidence.questions import Document
from spscanner_rag.system.whole_files import telling_of_full_disks


class DocumentStore:
    """Documents by number, in their order.

    A text is read from disk when it is needed.

    The file of texts has no name, so it vanishes even when the process is killed.

    Examples
    --------
    >>> store = DocumentStore([Document("1", "walks", "", "The fox slept.", ())])
    >>> store.document(0).text
    'The fox slept.'
    """

    def __init__(
        self, documents: Iterable[Document], folder: Path | None = None
    ) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._texts = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._texts.close)
        # each document without its text, the text's first byte, and its length in bytes
        self._entries: list[tuple[Document, int, int]] = []
        position = 0
        with telling_of_full_disks(folder or Path(tempfile.gettempdir())):
            for document in documents:
                # lone surrogates are text too
                encoded = document.text.encode("utf-8", "surrogatepass")
                self._texts.write(encoded)
                without_text = replace(document, text="")
                self._entries.append((without_text, position, len(encoded)))
                position += len(encoded)
            self._texts.flush()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Document]:
        for number in range(len(self)):
            yield self.document(number)

    @property
    def bytes(self) -> int:
        """The total length of the texts."""
        return sum(length for _, _, length in self._entries)

    def leave_out(self, shared: Collection[tuple[str, str]]) -> None:
        """Forget documents, by source and id, and renumber the others."""
        remaining = []
        for entry in self._entries:
            document = entry[0]
            if (document.source, document.doc_id) not in shared:
                remaining.append(entry)
        self._entries = remaining

    def without_text(self, number: int) -> Document:
        """Document ``number`` with an empty text, which spares reading it from disk."""
        return self._entries[number][0]

    def document(self, number: int) -> Document:
        """Document ``number`` with its text."""
        document, start, length = self._entries[number]
        # pread, since forked processes share the position that seek would set
        encoded = os.pread(self._texts.fileno(), length, start)
        return replace(document, text=encoded.decode("utf-8", "surrogatepass"))
