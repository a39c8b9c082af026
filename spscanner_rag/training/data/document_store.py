"""Training documents with their questions in memory and their texts in a file."""

import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import compress
from pathlib import Path

from spscanner_rag.evidence.questions import Document


class DocumentStore:
    """Documents by number, in the order given; a text is read from disk when it is asked for.

    Parameters
    ----------
    documents : iterable of Document
        Read once.
    folder : Path, optional
        The file of texts is made here, without a name, so that it is gone when the process ends in whatever way.
        Default: the system's folder for temporary files.
    """

    def __init__(self, documents: Iterable[Document], folder: Path | None = None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._texts = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the store
        weakref.finalize(self, self._texts.close)
        self._documents: list[Document] = []
        self._spans: list[tuple[int, int]] = []  # bytes: start and length
        position = 0
        for document in documents:
            encoded = document.text.encode("utf-8", "surrogatepass")  # lone surrogates are text too
            self._texts.write(encoded)
            self._documents.append(replace(document, text=""))
            self._spans.append((position, len(encoded)))
            position += len(encoded)
        self._texts.flush()

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return (self.document(number) for number in range(len(self)))

    def leave_out(self, shared: Collection[tuple[str, str]]) -> None:
        """Forget documents, given by source and id; the others are numbered anew."""
        kept = [(d.source, d.doc_id) not in shared for d in self._documents]
        self._documents, self._spans = (
            list(compress(self._documents, kept)),
            list(compress(self._spans, kept)),
        )

    def without_text(self, number: int) -> Document:
        """Document ``number`` as it is in memory, with an empty text."""
        return self._documents[number]

    def document(self, number: int) -> Document:
        """Document ``number`` with its text."""
        start, length = self._spans[number]
        # not seek and read: forked processes share the file's position
        text = os.pread(self._texts.fileno(), length, start).decode("utf-8", "surrogatepass")
        return replace(self._documents[number], text=text)
