"""Whole documents, and which of them a chunk was cut from."""

from collections.abc import Iterable, Iterator, Sequence

from langchain_core.documents import Document

from langchain_spscanner._identity import canonical, parent_name, start_of


class Wholes:
    """Finds the document that a chunk was cut from.

    By the chunk's id, else by the metadata that it has from its document, else by the document key; the
    chunk's text must stand in it.

    Parameters
    ----------
    documents
        The whole documents.
    document_key
        Metadata key that names a document, if there is one.
    """

    def __init__(self, documents: Sequence[Document], document_key: str | None) -> None:
        self.documents = documents
        self.document_key = document_key
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._squeezed: dict[int, str] = {}
        for number, document in enumerate(documents):
            for name in self._names(document):
                self._numbers.setdefault(name, []).append(number)

    def holding(self, chunk: Document) -> list[int]:
        """Numbers of the documents that the chunk may be cut from: one, if all is well."""
        for name in self._names(chunk):
            found = self._with_text(self._numbers.get(name, ()), chunk)
            if found:
                texts = {self.documents[number].page_content for number in found}
                return found[:1] if len(texts) == 1 else found
        return []

    def only(self, chunk: Document) -> Document | None:
        """The document that the chunk was cut from, if there is exactly one."""
        found = self.holding(chunk)
        return self.documents[found[0]] if len(found) == 1 else None

    def _names(self, document: Document) -> Iterator[tuple[str, str]]:
        if document.id is not None:
            yield "id", document.id
        yield "parent", parent_name(document)
        value = None if self.document_key is None else document.metadata.get(self.document_key)
        if value is not None:
            yield "key", canonical(value)

    def _with_text(self, candidates: Iterable[int], chunk: Document) -> list[int]:
        text, start = chunk.page_content, start_of(chunk)
        squeezed = "".join(text.split())
        numbers = list(candidates)
        if not squeezed:
            return []
        if start is not None:
            there = [number for number in numbers if self._stands_at(number, text, start)]
            if there:
                return there
        holding = [number for number in numbers if text in self.documents[number].page_content]
        return holding or [number for number in numbers if squeezed in self._without_space(number)]

    def _stands_at(self, number: int, text: str, start: int) -> bool:
        whole = self.documents[number]
        shift = start - (start_of(whole) or 0)
        return shift >= 0 and whole.page_content.startswith(text, shift)

    def _without_space(self, number: int) -> str:
        # Splitters normalize white space; made only when a chunk does not stand in its document as it is.
        if number not in self._squeezed:
            self._squeezed[number] = "".join(self.documents[number].page_content.split())
        return self._squeezed[number]
