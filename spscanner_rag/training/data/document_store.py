"""Training documents with their texts on disk: in memory are their questions and where each text lies."""

import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from spscanner_rag.evidence.questions import Document


class DocumentStore:
    """Documents by number, in the order given; a text is read from disk when it is asked for.

    Parameters
    ----------
    documents : iterable of Document
        Gone through once.
    folder : Path, optional
        Where the file of texts is made. It has no name there, so that nothing is left behind, however the process
        ends. Default: the system's folder for such files.
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
            # lone surrogates are text too
            encoded = document.text.encode("utf-8", "surrogatepass")
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
        """Forget documents, given by source and name; the others close ranks."""
        kept = [
            number
            for number, document in enumerate(self._documents)
            if (document.source, document.doc_id) not in shared
        ]
        self._documents = [self._documents[number] for number in kept]
        self._spans = [self._spans[number] for number in kept]

    def without_text(self, number: int) -> Document:
        """Document ``number`` with an empty text: what is in memory."""
        return self._documents[number]

    def document(self, number: int) -> Document:
        """Document ``number`` with its text."""
        start, length = self._spans[number]
        # not seek and read: processes that were forked share the file's place
        text = os.pread(self._texts.fileno(), length, start).decode("utf-8", "surrogatepass")
        return replace(self._documents[number], text=text)
