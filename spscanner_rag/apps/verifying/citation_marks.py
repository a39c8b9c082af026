"""The citations in an answer: numbers, names of files, pages, and their list."""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

import regex

_NUMBERS = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*"
_MARK = regex.compile(
    rf"\[\^?(?P<numbers>{_NUMBERS})\](?!\()"
    r"|【(?P<opened>\d{1,3})?[^【】\n]{0,120}】"
    r"|\[[^\[\]\n]{1,200}\]\((?P<link>[^()\s]{1,500})\)"
    r"|[\[(](?P<named>[^\[\]()\n]{3,200})[\])]"
)
_LIST_LINE = regex.compile(
    r"^[ \t]*(?:[-*][ \t]+)?\[\^?(?P<number>\d{1,3})\]:?[ \t]+(?P<place>\S.*)$",
    regex.MULTILINE,
)
_PAGE = regex.compile(r"\b(?:pages?|pp?\.)\s*(?P<label>[\w-]{1,12})", regex.IGNORECASE)
_RANGE = regex.compile(r"^\s*(\d+)\s?[–-]\s?(\d+)\s*$")
_MOST_NUMBERS = 20


class Citation(NamedTuple):
    """What an answer cites: a document, or a name that no document has."""

    written: str
    document: int | None  # its index; None if no document is meant
    page: str | None = None


class CitationMark(NamedTuple):
    """Citations at one place of an answer."""

    start: int
    end: int
    citations: tuple[Citation, ...]


class MarkReader:
    """Reads the marks of an answer.

    Parameters
    ----------
    names : sequence of str
        The documents' names, "" for a text without one.

    Examples
    --------
    >>> reader = MarkReader(["log.pdf", "crew.txt"])
    >>> for mark in reader.marks("She sank [2]. The mate left (log.pdf, page 4)."):
    ...     print(mark.citations)
    (Citation(written='[2]', document=1, page=None),)
    (Citation(written='(log.pdf, page 4)', document=0, page='4'),)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names: list[tuple[str, int]] = []
        for number, name in enumerate(names):
            path = PurePath(name)
            for form in {name, path.name, path.stem}:
                if len(form) > 2:
                    self._names.append((form.casefold(), number))
        self._names.sort(key=lambda pair: -len(pair[0]))
        self._n_documents = len(names)

    def marks(self, answer: str) -> list[CitationMark]:
        """The marks of an answer with what they cite, ascending."""
        listed = {}
        for match in _LIST_LINE.finditer(answer):
            listed[int(match["number"])] = match["place"]
        lines = list_lines(answer)
        line_starts = [start for start, _ in lines]
        marks: list[CitationMark] = []
        for match in _MARK.finditer(answer):
            citations = self._citations(match, listed)
            line = bisect_right(line_starts, match.start()) - 1
            is_listed = line >= 0 and match.start() < lines[line][1]
            if citations and not is_listed:
                marks.append(CitationMark(match.start(), match.end(), citations))
        return marks

    def _citations(
        self, match: "regex.Match[str]", listed: dict[int, str]
    ) -> tuple[Citation, ...]:
        numbers = match["numbers"] or match["opened"]
        if numbers:
            citations = []
            for number in _numbers_in(numbers):
                citations.append(self._numbered(match[0], number, listed))
            return tuple(citations)
        written = match["link"] or match["named"] or match[0]
        document = self._named(written)
        if document is None:
            return ()
        return (Citation(match[0], document, _page_in(written)),)

    def _numbered(self, written: str, number: int, listed: dict[int, str]) -> Citation:
        """What a number means: its line in the list, else the documents in order."""
        place = listed.get(number)
        if place is not None:
            return Citation(place, self._named(place), _page_in(place))
        if not listed and 1 <= number <= self._n_documents:
            return Citation(written, number - 1)
        return Citation(written, None)

    def _named(self, text: str) -> int | None:
        """The document whose name is in a text, the longest name first."""
        plain = text.casefold()
        for name, number in self._names:
            at = plain.find(name)
            if at < 0:
                continue
            around = plain[max(at - 1, 0) : at] + plain[at + len(name) :][:1]
            if not any(map(str.isalnum, around)):
                return number
        return None


def list_lines(answer: str) -> list[tuple[int, int]]:
    """The spans of the lines that list what numbers cite."""
    return [match.span() for match in _LIST_LINE.finditer(answer)]


def _page_in(text: str) -> str | None:
    match = _PAGE.search(text)
    return match["label"] if match else None


def _numbers_in(text: str) -> list[int]:
    numbers: list[int] = []
    for piece in regex.split("[,;]", text):
        bounds = _RANGE.match(piece)
        if bounds:
            numbers += range(int(bounds[1]), int(bounds[2]) + 1)[:_MOST_NUMBERS]
        else:
            numbers.append(int(piece))
    return numbers[:_MOST_NUMBERS]
