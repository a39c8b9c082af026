"""The tools of the server: an agent's search in documents."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import BeforeValidator, Field

from spscanner_rag.apps.agent_selection import selection_of
from spscanner_rag.apps.mcp.answers import (
    Found,
    FoundPassage,
    PassageId,
    cut_place,
    digest_of,
    json_of,
    place_of,
)
from spscanner_rag.apps.mcp.fitted_answer import RankedPassages, start_of
from spscanner_rag.apps.mcp.progress import RequestProgress
from spscanner_rag.apps.mcp.question_reader import QuestionReader, key_of
from spscanner_rag.apps.mcp.readable_files import MOST_CHARACTERS, ReadableFiles
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.reading import read
from spscanner_rag.results.together import Together
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import check_query
from spscanner_rag.text.escaping import one_line

FOLDER_FILES = 10_000
"""Most files in a folder, to count their words."""

FOLDER_CHARACTERS = 20_000_000
"""Most characters of these files."""

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_NOTES_SHOWN = 3

# agents send null for a missing value
_NULL = BeforeValidator(lambda value: "" if value is None else value)
_Question = Annotated[str, Field(min_length=1, max_length=10_000)]
_Path = Annotated[str, Field(max_length=4_096), _NULL]
_Text = Annotated[str, Field(max_length=MOST_CHARACTERS), _NULL]
_Cursor = Annotated[str, Field(max_length=100), _NULL]
# hosts cut answers longer than 25,000
_MaxTokens = Annotated[int, Field(ge=500, le=20_000)]


class Library:
    """The tools of the server.

    They read files below some folders that are not hidden, with links resolved.

    Parameters
    ----------
    scanner : Scanner
    folders : sequence of str or Path
    read_file : callable, optional
        Reads the file with this path.
    """

    def __init__(
        self,
        scanner: Scanner,
        folders: Sequence[str | Path],
        read_file: Callable[[str], TextFile] = read,
    ) -> None:
        self._scanner = scanner
        self.files = ReadableFiles(folders, read_file)
        self._reader = QuestionReader(scanner)

    def search_document(
        self,
        question: _Question,
        context: Context,
        path: _Path = "",
        text: _Text = "",
        max_tokens: _MaxTokens = 4000,
        cursor: _Cursor = "",
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> Found:
        """Find the sentences of one document that answer a question.

        Give its path, or else its text.
        """
        check_query(question, "question")
        if bool(path) == bool(text.strip()):
            number = "both" if path else "neither"
            raise ValueError(f"path, text: got {number}; expected one of them")
        document = self.files.document(path) if path else TextFile("", text)
        return self._search(
            question,
            [document],
            list(document.notes),
            max_tokens,
            cursor,
            RequestProgress(context),
            options,
        )

    def search_folder(
        self,
        question: _Question,
        context: Context,
        folder: _Path = ".",
        max_tokens: _MaxTokens = 4000,
        cursor: _Cursor = "",
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> Found:
        """Find the sentences that answer a question in all documents below a folder."""
        check_query(question, "question")
        files = 0
        characters = 0
        notes: list[str] = []
        progress = RequestProgress(context)

        def read_within_limits(path: str) -> TextFile:
            nonlocal files, characters
            progress()
            if files == FOLDER_FILES or characters > FOLDER_CHARACTERS:
                raise ValueError(
                    f"{path}: too much in one folder; name a folder in it, or this file"
                )
            document = self.files.document(path)
            files += 1
            characters += len(document.text)
            return document

        real_folder = self.files.resolved(folder or ".", is_folder=True)
        documents = read_all([str(real_folder)], notes.append, read_within_limits)
        return self._search(
            question, documents, notes, max_tokens, cursor, progress, options
        )

    def read_passage(
        self,
        id: Annotated[str, Field(max_length=4_200)],  # noqa: A002
        neighbours: Annotated[int, Field(ge=0, le=50)] = 3,
        max_tokens: _MaxTokens = 4000,
    ) -> FoundPassage:
        """Read a passage by its id, with the sentences around it.

        There are as many sentences around it as fit.
        """
        passage = PassageId.parse(id)
        document = self._document_of(passage)
        start = passage.start
        end = passage.end
        units = self._scanner.units_of(document.text, document.blocks)
        first = bisect_right(units, start, key=lambda unit: unit.end)
        last = bisect_right(units, end - 1, key=lambda unit: unit.start)
        for n_neighbours in range(neighbours, 0, -1):
            around = units[max(0, first - n_neighbours) : last + n_neighbours]
            place = place_of(
                document, min(start, around[0].start), max(end, around[-1].end)
            )
            if self._scanner.count_tokens(json_of(place)) <= max_tokens:
                return place
        return cut_place(document, start, end, self._scanner.count_tokens, max_tokens)

    def _document_of(self, passage: PassageId) -> TextFile:
        """The document that still has the passage."""
        documents: Iterable[TextFile] = self._reader.texts_without_file()
        reason = "the text is no longer in memory"
        if passage.path:
            documents = [self.files.document(passage.path)]
            reason = f"{passage.path} has changed since it was searched"
        for document in documents:
            if passage.is_in(document):
                return document
        raise ValueError(
            f"id: {reason}; expected the id of a passage in it: search it again"
        )

    def _search(
        self,
        question: str,
        documents: list[TextFile],
        notes: list[str],
        max_tokens: int,
        cursor: str,
        progress: RequestProgress,
        options: Mapping[str, Any],
    ) -> Found:
        """Return as many of the ranked passages as fit, starting at the cursor."""
        selection = selection_of(options)
        key = key_of(question, documents)
        cursor_key = digest_of(key, json.dumps(dict(options), sort_keys=True))
        first = start_of(cursor, cursor_key)
        scanned = self._reader.scan(question, documents, key, progress)
        if n_unread := len(documents) - len(scanned):
            less_likely = (
                f"{n_unread:,} documents that are less likely to answer: name one to"
                " read it"
            )
            notes = [less_likely, *notes]
        ranked = RankedPassages(
            scanned,
            Together([result for _, result in scanned]).select(selection),
            self._shown(notes, max_tokens // 10),
            cursor_key,
            self._scanner.count_tokens,
        )
        return ranked.fitted(first, max_tokens)

    def _shown(self, notes: Sequence[str], most_characters: int) -> list[str]:
        shown: list[str] = []
        for note in notes[:_NOTES_SHOWN]:
            shown.append(one_line(self.files.without_roots(note))[:most_characters])
        if len(notes) > _NOTES_SHOWN:
            shown.append(f"and {len(notes) - _NOTES_SHOWN:,} more")
        return shown
