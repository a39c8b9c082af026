"""What repeats at the edges of a PDF's pages: running headers, footers, page numbers.

Nothing that says something is lost: a repeated sentence, an address or another line
with numbers is read once, on its first page. Only short titles and page numbers are
left out, and a note names the titles.
"""

import re
from collections.abc import Iterable, Sequence

from spscanner_rag.files.apart import Record
from spscanner_rag.files.readers.pdf_paragraphs import ends_sentence
from spscanner_rag.text.pages import FEWEST_PAGES, is_sentence, running_lines

TOP = "top"
BOTTOM = "bottom"

EdgeLine = tuple[int, int]
"""Numbers of a paragraph of a page, and of a line in it."""

_FEWEST_WITH_EDGES = 2  # pages; what two share is not left out, but read once
_MOST_NAMED = 20  # lines in the note
_LONGEST_NAMED = 150  # characters of each
_LONGEST_TITLE = 5  # words; a longer line says something
_PAGE_NUMBER = re.compile(
    r"[^\w]*(?:page|pages|seite|página|p|s|sida|strana)?[^\w]*"
    r"(?:\d{1,6}|[ivxlc]{1,8})"
    r"[^\w]*(?:(?:of|von|de|sur|di|av|/)?[^\w]*\d{1,6})?[^\w]*",
    re.IGNORECASE,
)
_NUMBER_AT_AN_END = re.compile(r"^\W*\d{1,6}\b|\b\d{1,6}\W*$")
_DIGITS = re.compile(r"\d{1,6}")
_PAGES_OF_A_BOOK = 10  # on fewer pages, only the page's own number is taken for one
_SAYS_SOMETHING = re.compile(r"[\d,:;@%€$£]")


class PageEdges:
    """The running lines of all pages.

    Parameters
    ----------
    pages : sequence of Record
        As `pdf.read_pages` yields them.
    """

    def __init__(self, pages: Sequence[Record]) -> None:
        self.running: list[set[EdgeLine]] = [set() for _ in pages]
        """Of each page, the lines that are not where they stand in the text."""
        self.read_once: list[dict[str, list[list[EdgeLine]]]] = []
        """Of each page, by edge, the rows that are read there all the same."""
        self._pages_of: dict[str, list[int]] = {}
        self._titles: dict[str, list[int]] = {}
        self._first_text: dict[str, str] = {}
        self._is_book = len(pages) >= _PAGES_OF_A_BOOK
        self._may_leave_out = len(pages) >= FEWEST_PAGES
        for _ in pages:
            self.read_once.append({TOP: [], BOTTOM: []})
        if len(pages) >= _FEWEST_WITH_EDGES:
            self._find(pages)

    def notes(self) -> Iterable[str]:
        """A line on titles that were left out, and one on lines that are read once."""
        if self._titles:
            yield f"left out at page edges: {self._named(self._titles)}"
        repeated = {
            text: pages for text, pages in self._pages_of.items() if len(pages) > 1
        }
        if repeated:
            yield f"repeated at page edges and read once: {self._named(repeated)}"

    def _named(self, lines: dict[str, list[int]]) -> str:
        parts = []
        for text, pages in list(lines.items())[:_MOST_NAMED]:
            title = self._first_text[text][:_LONGEST_NAMED]
            parts.append(f'"{title}" ({_in_words(pages)})')
        if len(lines) > _MOST_NAMED:
            parts.append(f"{len(lines) - _MOST_NAMED:,} more")
        return ", ".join(parts)

    def _find(self, pages: Sequence[Record]) -> None:
        numbers = list(range(1, len(pages) + 1))
        running: list[list[tuple[str, list[EdgeLine]]]] = [[] for _ in pages]
        for edge in (TOP, BOTTOM):
            texts = []
            for page in pages:
                texts.append([_text_of_row(page, row) for row in page.get(edge, ())])
            counts = running_lines(texts, numbers, fewest=min(FEWEST_PAGES, len(pages)))
            for number, count in enumerate(counts):
                rows = []
                for row in pages[number].get(edge, ())[:count]:
                    if _is_within_sentence(pages[number], row):
                        break
                    rows.append((edge, _as_lines(row)))
                # from top to bottom
                running[number] += rows if edge == TOP else rows[::-1]
        for number, page in enumerate(pages):
            lines = set()
            for _, row in running[number]:
                lines |= set(row)
            if len(lines) == sum(len(part["lines"]) for part in page.get("parts", ())):
                continue  # there is no other text
            self.running[number] = lines
            for edge, row in running[number]:
                self._sort(number, edge, row, _text_of_row(page, row))

    def _sort(self, number: int, edge: str, row: list[EdgeLine], text: str) -> None:
        """Decide whether a running row is read once, named in a note, or a number."""
        if _PAGE_NUMBER.fullmatch(text):
            return
        title = " ".join(_NUMBER_AT_AN_END.sub("", text).split())
        has_other_number = title != " ".join(text.split()) and not (
            self._is_book or str(number + 1) in _DIGITS.findall(text)
        )
        key = title.casefold()
        lines = self._titles
        if has_other_number or is_sentence(text):
            key = " ".join(text.split()).casefold()
            lines = self._pages_of
        elif _says_something(title) or not self._may_leave_out:
            lines = self._pages_of
        if lines is self._pages_of and key not in lines:
            self.read_once[number][edge].append(row)
        self._first_text.setdefault(key, " ".join(text.split()))
        lines.setdefault(key, []).append(number + 1)


def _is_within_sentence(page: Record, row: Sequence[Sequence[int]]) -> bool:
    """Whether a row continues the sentence of the line above it."""
    part, line = row[0]
    lines = page["parts"][part]["lines"]
    if line == 0 or not lines[line][0][:1].islower():
        return False
    return not ends_sentence(lines[line - 1][0])


def _as_lines(row: Sequence[Sequence[int]]) -> list[EdgeLine]:
    return [(paragraph, line) for paragraph, line in row]


def _text_of_row(page: Record, row: Sequence[Sequence[int]]) -> str:
    return " ".join(page["parts"][part]["lines"][line][0] for part, line in row)


def _says_something(title: str) -> bool:
    """Whether a line is more than a title, such as an address."""
    too_long = len(title.split()) > _LONGEST_TITLE
    return too_long or _SAYS_SOMETHING.search(title) is not None


def _in_words(pages: Sequence[int]) -> str:
    """Numbers of pages, increasing, for a note, where each counts once.

    Examples
    --------
    >>> _in_words([1, 1, 2, 3]), _in_words([1, 3, 5])
    ('pages 1 to 3', '3 pages from 1 to 5')
    """
    pages = list(dict.fromkeys(pages))
    if len(pages) == 1:
        return f"page {pages[0]}"
    if pages[-1] - pages[0] == len(pages) - 1:
        return f"pages {pages[0]} to {pages[-1]}"
    return f"{len(pages)} pages from {pages[0]} to {pages[-1]}"
