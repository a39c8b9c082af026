"""The documents that an answer is checked against, and what could not be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spscanner_rag.apps.verifying.searched_text import SearchedText
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import read
from spscanner_rag.results.passages import Passage, shown_text

if TYPE_CHECKING:
    from spscanner_rag.scan.prepared_document import PreparedDocument
    from spscanner_rag.scanner import Scanner

CheckedDocument: TypeAlias = str | Path | TextFile | tuple[str, str]
"""A text, the path of a file, what `spscanner_rag.files.read` returned, or a name with
a text."""


class CheckedDocuments:
    """Documents of several kinds, read, in the order given.

    A file that cannot be read stays in its place, without text.

    Parameters
    ----------
    documents : iterable
        Each as `CheckedDocument`.

    Raises
    ------
    TypeError
        For one document in place of several, or one of another type.
    """

    def __init__(self, documents: Iterable[CheckedDocument]) -> None:
        if isinstance(documents, str | Path | TextFile):
            raise TypeError(
                f"documents: got one {type(documents).__name__}; expected several, such"
                " as [text]"
            )
        self.notes: list[str] = []
        self.files: list[TextFile] = []
        for document in documents:
            file = self._read(document)
            self.files.append(file)
            if not file.text.strip() and not isinstance(document, Path):
                name = file.path or f"document {len(self.files)}"
                self.notes.append(f"{name}: has no text")
        if not self.files:
            self.notes.append("no documents were given: nothing can be found")

    def _read(self, document: CheckedDocument) -> TextFile:
        match document:
            case str():
                return TextFile("", document)
            case (str() as name, str() as text):
                return TextFile(name, text)
            case TextFile():
                return document
            case Path():
                try:
                    return read(document)
                except (ValueError, ImportError) as error:
                    self.notes.append(f"could not be read: {error}")
                    return TextFile(str(document), "")
        raise TypeError(
            f"documents: got {type(document).__name__}; expected texts, paths, what"
            " spscanner_rag.files.read returned, or pairs of a name and a text"
        )

    @property
    def names(self) -> list[str]:
        """The documents' names, "" for a text without one."""
        return [file.path for file in self.files]

    @cached_property
    def searched(self) -> Sequence[SearchedText]:
        """The documents' words."""
        texts = []
        for file in self.files:
            markup = [
                (block.start, block.end)
                for block in file.blocks
                if block.kind == "markup"
            ]
            texts.append(SearchedText(file.text, markup))
        return texts

    def prepared(self, scanner: "Scanner") -> "list[PreparedDocument]":
        """The documents as a scanner reads them."""
        return [scanner.prepare(file) for file in self.files]

    def passage(self, number: int, start: int, end: int, score: float) -> Passage:
        """A span of a document with its place."""
        file = self.files[number]
        text = shown_text(file.text, file, start, end)
        return Passage(text, start, end, score).within(file)


@dataclass(frozen=True)
class Cited:
    """The documents and pages that a statement cites."""

    pages_of: dict[int, set[str]]  # document -> its cited pages, empty for any page
    unknown: bool  # whether it cites something that is not among the documents

    def allows(self, number: int, passage: Passage) -> bool:
        """Whether a passage is where the statement says."""
        pages = self.pages_of.get(number)
        if pages is None:
            return False
        return not pages or passage.page is None or passage.page in pages
