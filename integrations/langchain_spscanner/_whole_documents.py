"""Finds the whole document that a chunk was cut from."""

from collections.abc import Iterator, Sequence

from langchain_core.documents import Document

from langchain_spscanner._document_metadata import group_of
from langchain_spscanner._document_names import parent_name


class WholeDocuments:
    """Finds the document that has a chunk's text and was its source.

    Both have the same id, the same metadata, or the same value under
    ``document_key``.
    """

    def __init__(self, documents: Sequence[Document], document_key: str | None) -> None:
        self.documents = documents
        self.document_key = document_key
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._without_space: dict[int, str] = {}
        for number, document in enumerate(documents):
            for name in self._names(document):
                self._numbers.setdefault(name, []).append(number)

    def holding(self, chunk: Document) -> list[int]:
        """Indices of the documents that the chunk may be cut from.

        Several if it is ambiguous, none if they are unknown.
        """
        for name in self._names(chunk):
            candidates = self._numbers.get(name, ())
            numbers = self._with_text(candidates, chunk.page_content)
            if numbers:
                texts = {self.documents[number].page_content for number in numbers}
                return numbers[:1] if len(texts) == 1 else numbers
        return []

    def _names(self, document: Document) -> Iterator[tuple[str, str]]:
        """The names of a document, the surest first."""
        if document.id is not None:
            yield "id", document.id
        yield "parent", parent_name(document)
        group = group_of(document, self.document_key)
        if group is not None:
            yield "key", group

    def _with_text(self, numbers: Sequence[int], text: str) -> list[int]:
        """The documents with a text, or else with its characters but white space."""
        without_space = "".join(text.split())
        if not without_space:
            return []
        exact: list[int] = []
        for number in numbers:
            if text in self.documents[number].page_content:
                exact.append(number)
        if exact:
            return exact
        similar: list[int] = []
        for number in numbers:  # splitters may change white space
            if without_space in self._squeezed(number):
                similar.append(number)
        return similar

    def _squeezed(self, number: int) -> str:
        if number not in self._without_space:
            words = self.documents[number].page_content.split()
            self._without_space[number] = "".join(words)
        return self._without_space[number]
