"""The tools of the server: an agent's search in documents."""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context
from pydantic import Field, TypeAdapter, WithJsonSchema

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
from spscanner_rag.apps.mcp.identity import IdentifiedText, Identities
from spscanner_rag.apps.mcp.progress import RequestProgress
from spscanner_rag.apps.mcp.question_reader import (
    AgentQuestion,
    QuestionReader,
    ScannedTexts,
    key_of,
)
from spscanner_rag.apps.mcp.readable_files import (
    MOST_CHARACTERS,
    ReadableFiles,
    ReadContent,
)
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.results.selection import Selection
from spscanner_rag.results.together import Together
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Read, check_query
from spscanner_rag.text.escaping import one_line

FOLDER_FILES = 10_000
"""Most files in a folder, to count their words."""

FOLDER_CHARACTERS = 20_000_000
"""Most characters of these files."""

SMALL_CHARACTERS = 100_000
"""Longer texts have threads of their own, for which short ones need not wait."""

T = TypeVar("T")

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_NOTES_SHOWN = 3
_TOO_MUCH = "too much in one folder"

_Question = Annotated[str, Field(min_length=1, max_length=10_000)]
_Path = Annotated[str, Field(max_length=4_096)]
_Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
_Cursor = Annotated[str, Field(max_length=100)]
# hosts cut answers longer than 25,000
_MaxTokens = Annotated[int, Field(ge=500, le=20_000)]
# checked by `check_read`, whose message an agent gets
_Read = Annotated[Any, WithJsonSchema(TypeAdapter(Read).json_schema())]


class Library:
    """The tools of the server.

    They read files below some folders that are not hidden, with links resolved. No tool
    keeps a thread while it waits for the model, so any number of calls can wait.

    Parameters
    ----------
    scanner : Scanner
    folders : sequence of str or Path
    read_content : callable, optional
        Reads a document from the path and the content of its file.
    """

    def __init__(
        self,
        scanner: Scanner,
        folders: Sequence[str | Path],
        read_content: ReadContent = read_bytes,
    ) -> None:
        self._scanner = scanner
        self.files = ReadableFiles(folders, read_content)
        self._reader = QuestionReader(scanner)
        self._identities = Identities()
        self._small = ThreadPoolExecutor(2, "spscanner-small")
        self._large = ThreadPoolExecutor(2, "spscanner-large")

    def close(self) -> None:
        """Answer the waiting calls, and end the threads."""
        self._reader.close()
        for threads in (self._small, self._large):
            threads.shutdown(cancel_futures=True)

    async def search_document(
        self,
        question: _Question,
        context: Context,
        path: _Path = "",
        text: _Text = "",
        max_tokens: _MaxTokens = 4000,
        cursor: _Cursor = "",
        read: _Read = None,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> Found:
        """Find the sentences of one document that answer a question.

        Give its path, or else its text. read: "auto", "all", or the share to read.
        """
        prepared_question = self._question(question, read, context)
        if bool(path) == bool(text.strip()):
            number = "both" if path else "neither"
            raise ValueError(f"path, text: got {number}; expected one of them")
        progress = RequestProgress(context.report_progress)
        if path:
            read_file = partial(self._read_file, path)
            identified = await self._worked(read_file, self.files.size(path), progress)
        else:
            identified = self._identities.of(TextFile("", text))
        return await self._search(
            prepared_question,
            [identified],
            list(identified.document.notes),
            max_tokens,
            cursor,
            progress,
            options,
        )

    async def search_folder(
        self,
        question: _Question,
        context: Context,
        folder: _Path = ".",
        max_tokens: _MaxTokens = 4000,
        cursor: _Cursor = "",
        read: _Read = None,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> Found:
        """Find the sentences that answer a question in all documents below a folder."""
        prepared_question = self._question(question, read, context)
        notes: list[str] = []
        progress = RequestProgress(context.report_progress)
        read_folder = partial(self._read_folder, folder, notes, progress)
        texts = await self._worked(read_folder, FOLDER_CHARACTERS, progress)
        return await self._search(
            prepared_question,
            texts,
            notes,
            max_tokens,
            cursor,
            progress,
            options,
        )

    async def read_passage(
        self,
        id: Annotated[str, Field(max_length=4_200)],  # noqa: A002
        context: Context,
        neighbours: Annotated[int, Field(ge=0, le=50)] = 3,
        max_tokens: _MaxTokens = 4000,
    ) -> FoundPassage:
        """Read a passage by its id, with the sentences around it.

        There are as many sentences around it as fit.
        """
        passage = PassageId.parse(id)
        progress = RequestProgress(context.report_progress)
        if passage.path:
            read_file = partial(self._read_file, passage.path)
            size = self.files.size(passage.path)
            text = await self._worked(read_file, size, progress)
            reason = f"{passage.path} has changed since it was searched"
        else:
            sent = self._reader.text_without_file(passage.mark)
            text = sent or self._identities.of(TextFile("", ""))
            reason = "the text is no longer in memory"
        if not passage.is_in(text):
            raise ValueError(
                f"id: {reason}; expected the id of a passage in it: search it again"
            )
        size = len(text.document.text)
        fit = partial(
            self._fitted_around, passage, text, neighbours, max_tokens, progress
        )
        return await self._worked(fit, size, progress)

    async def _worked(
        self, work: Callable[[], T], size: int, progress: RequestProgress
    ) -> T:
        """Do work without the model in a thread for texts of this size."""
        threads = self._small if size <= SMALL_CHARACTERS else self._large
        return await progress.awaited(threads.submit(work))

    def _question(
        self,
        question: str,
        read: Any,  # noqa: ANN401 - as an agent sent it
        context: Context,
    ) -> AgentQuestion:
        """Check a question, and what it asks to read: by default as the server does."""
        check_query(question, "question")
        read_option = self._scanner.read
        if read is not None:
            try:
                read_option = self._scanner.with_read(read).read
            except TypeError as error:
                raise ValueError(str(error)) from None
        return AgentQuestion(question, read_option, str(id(context.session)))

    def _read_file(self, path: str) -> IdentifiedText:
        return self._identities.of(self.files.document(path))

    def _read_folder(
        self, folder: str, notes: list[str], progress: RequestProgress
    ) -> list[IdentifiedText]:
        files = 0
        characters = 0

        def read_within_limits(path: str) -> TextFile:
            nonlocal files, characters
            progress.step()
            if files == FOLDER_FILES or characters > FOLDER_CHARACTERS:
                raise ValueError(
                    f"{path}: {_TOO_MUCH}; name a folder in it, or this file"
                )
            document = self.files.document(path)
            files += 1
            characters += len(document.text)
            return document

        real_folder = self.files.resolved(folder or ".", is_folder=True)
        documents = read_all([str(real_folder)], notes.append, read_within_limits)
        # only some notes are shown
        notes.sort(key=lambda note: _TOO_MUCH not in note)
        return [self._identities.of(document) for document in documents]

    def _fitted_around(
        self,
        passage: PassageId,
        text: IdentifiedText,
        neighbours: int,
        max_tokens: int,
        progress: RequestProgress,
    ) -> FoundPassage:
        """The passage with as many sentences around it as fit."""
        document = text.document
        start = passage.start
        end = passage.end
        reading = self._scanner.reading
        if document.blocks:
            units = reading.cut_blocks(document.text, document.blocks, progress.check)
        else:
            units = reading.cut(document.text, progress.check)
        first = bisect_right(units, start, key=lambda unit: unit.end)
        last = bisect_right(units, end - 1, key=lambda unit: unit.start)
        for n_neighbours in range(neighbours, 0, -1):
            around = units[max(0, first - n_neighbours) : last + n_neighbours]
            place = place_of(
                text, min(start, around[0].start), max(end, around[-1].end)
            )
            if self._scanner.count_tokens(json_of(place)) <= max_tokens:
                return place
        return cut_place(text, start, end, self._scanner.count_tokens, max_tokens)

    async def _search(
        self,
        question: AgentQuestion,
        texts: list[IdentifiedText],
        notes: list[str],
        max_tokens: int,
        cursor: str,
        progress: RequestProgress,
        options: Mapping[str, Any],
    ) -> Found:
        """Return as many of the ranked passages as fit, starting at the cursor."""
        selection = selection_of(options)
        key = key_of(question, texts)
        cursor_key = digest_of(key, json.dumps(dict(options), sort_keys=True))
        first = start_of(cursor, cursor_key)
        scanned = await self._reader.scan(question, texts, key, progress)
        if n_unread := len(texts) - len(scanned):
            less_likely = (
                f"{n_unread:,} documents that are less likely to answer: name one to"
                " read it"
            )
            notes = [less_likely, *notes]
        shown = self._shown(notes, max_tokens // 10)
        fit = partial(
            self._fitted, scanned, selection, shown, cursor_key, first, max_tokens
        )
        size = sum(len(text.document.text) for text, _ in scanned)
        return await self._worked(fit, size, progress)

    def _fitted(
        self,
        scanned: ScannedTexts,
        selection: Selection,
        notes: list[str],
        cursor_key: str,
        first: int,
        max_tokens: int,
    ) -> Found:
        results = [result for _, result in scanned]
        ranked = RankedPassages(
            scanned,
            Together(results).select(selection),
            notes,
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
