"""As many of the ranked passages as fit in an answer, from a cursor on."""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from spscanner_rag.apps.mcp.answers import (
    Found,
    FoundDocument,
    FoundPassage,
    cut_place,
    json_of,
    place_of,
)
from spscanner_rag.apps.mcp.question_reader import ScannedTexts
from spscanner_rag.results.passages import Passage

# a passage has at least so many tokens with its place
LEAST_PASSAGE_TOKENS = 30
CURSOR_DIGITS = 16  # of the key; a cursor alone gives nothing away
_CURSOR = re.compile(r"(\d{1,9})-([0-9a-f]{16})", re.ASCII)


@dataclass(frozen=True)
class RankedPassages:
    """The passages of an answer and of those that follow it.

    Parameters
    ----------
    scanned : list of (IdentifiedText, ScanResult)
    passages : list of (int, Passage)
        The best first, each with the number of its document in ``scanned``.
    notes : list of str
        What was not read.
    cursor_key : str
        The digest of question, documents and options.
    count_tokens : callable
    """

    scanned: ScannedTexts
    passages: list[tuple[int, Passage]]
    notes: list[str]
    cursor_key: str
    count_tokens: Callable[[str], int]

    def fitted(self, first: int, max_tokens: int) -> Found:
        """The answer that begins with the passage of this rank, counted from 0.

        It has as many passages as fit, or the beginning of one that is too long.
        """
        most_passages = len(self.passages) - first
        most_passages = min(most_passages, max_tokens // LEAST_PASSAGE_TOKENS)
        fitting = bisect_right(
            range(1, most_passages + 1),
            max_tokens,
            key=lambda number: self._tokens(self._answer(first, number)),
        )
        if most_passages > 0 and not fitting:
            answer = self._with_cut_passage(first, max_tokens)
        else:
            answer = self._answer(first, fitting)
        if answer["passages_left"] <= 0:
            answer |= {"cursor": None, "passages_left": 0}
        return answer

    def _answer(
        self, first: int, number: int, cut: FoundPassage | None = None
    ) -> Found:
        """The answer with this many passages, or with one passage that was cut."""
        entries: dict[int, FoundDocument] = {}
        for index, passage in self.passages[first : first + number]:
            text, result = self.scanned[index]
            document = text.document
            if index not in entries:
                entries[index] = FoundDocument(
                    path=document.path, characters=len(document.text), passages=[]
                )
                if result.answerable is not None:
                    entries[index]["answerable"] = round(result.answerable, 3)
            place = cut or place_of(text, passage.start, passage.end)
            score = round(passage.score, 4)
            entries[index]["passages"].append(place | {"score": score})
        return Found(
            documents=list(entries.values()),
            documents_read=len(self.scanned),
            not_read=self.notes,
            passages_left=len(self.passages) - first - number,
            cursor=f"{first + number}-{self.cursor_key[:CURSOR_DIGITS]}",
        )

    def _with_cut_passage(self, first: int, max_tokens: int) -> Found:
        index, passage = self.passages[first]
        empty = FoundPassage(id="", text="", start=0, end=0)
        around = self._tokens(self._answer(first, 1, empty))
        cut = cut_place(
            self.scanned[index][0],
            passage.start,
            passage.end,
            self.count_tokens,
            max_tokens - around,
        )
        return self._answer(first, 1, cut)

    def _tokens(self, answer: Found) -> int:
        return self.count_tokens(json_of(answer))


def start_of(cursor: str, key: str) -> int:
    """Where the answer after a cursor begins.

    ``key`` is the digest of question, documents and options.
    """
    match = _CURSOR.fullmatch(cursor)
    if cursor and (match is None or match[2] != key[:CURSOR_DIGITS]):
        reason = "of another question or document, or of one that has changed"
        raise ValueError(
            f"cursor: got {cursor!r:.60}, {reason}; expected the last answer's cursor,"
            " or none"
        )
    return int(match[1]) if match else 0
