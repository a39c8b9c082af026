"""The pages of a PDF as one text, with the places of its words.

A sentence that runs over a page break stays whole: footnotes, form values and what
repeats at the edges of pages stand before the paragraph that goes on.
"""

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.apart import Record
from spscanner_rag.files.documents import PageStart, TextFile
from spscanner_rag.files.readers.pdf_edges import BOTTOM, TOP, EdgeLine, PageEdges
from spscanner_rag.files.readers.pdf_paragraphs import (
    HEAD,
    NOTE,
    ROW,
    TEXT,
    ends_sentence,
)
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.divided_words import HYPHENS, LIGATURES, join_divided_words
from spscanner_rag.text.pages import sentence_goes_on

LARGER = 1.15
"""A paragraph with letters this many times the usual size may be a heading."""

_MOST_LINES = 2  # of a heading
_MOST_IN_A_ROW = 2  # headings of one size without text between
_LONGEST_HEADING = 150  # characters
_SENTENCE_ENDS = tuple(".,;:")
_CAPTION = re.compile(r"(Figure|Fig\.|Table|Abbildung|Tabelle|Abb\.|Tab\.)\s?\d")
_WIDE_GAP = "  "
_NUMBERED = re.compile(r"(\d{1,2}(\.\d{1,2})*\.?|[A-Z]\.|[IVX]{1,5}\.?)\s+\S")
_SENTENCE_END = re.compile(r"[^\W\d_]{3,}[.!?][\"”’)]*\s+(?=[\"“‘(]?[A-Z])")  # noqa: RUF001


class Part(NamedTuple):
    """A paragraph as it is in the text."""

    text: str  # lines that end with line breaks
    boxes: Sequence[int]  # four for each word
    kind: str
    size: float  # negative if bold
    table: int = 0


def joined_pages(
    pages: Sequence[Record], labels: Sequence[str], notes: tuple[str, ...]
) -> TextFile:
    """Join the pages into one text."""
    edges = PageEdges(pages)
    parts_of_pages = []
    for number, page in enumerate(pages):
        parts_of_pages.append(_parts(page, edges, number))
    goes_on = [False]
    for before, after in pairwise(parts_of_pages):
        goes_on.append(_page_goes_on(before, after))
    goes_on.append(False)
    for number, page in enumerate(pages):
        aside = _aside(page, edges, number)
        parts = parts_of_pages[number]
        parts_of_pages[number] = _with_aside(
            parts, aside, begun=goes_on[number], ends_open=goes_on[number + 1]
        )
    levels = heading_levels(parts_of_pages)
    texts = [_BREAK.join(part.text for part in parts) for parts in parts_of_pages]
    written = join_divided_words(texts)
    joined = _Joined(levels)
    for number, (parts, body) in enumerate(zip(parts_of_pages, written, strict=True)):
        joined.add_page(parts, texts[number], body, goes_on[number])
    starts = []
    for number, start in enumerate(joined.starts, start=1):
        starts.append(PageStart(start, number, labels[number - 1]))
    return TextFile(
        "",
        "".join(joined.texts),
        tuple(joined.blocks),
        tuple(starts),
        (*notes, *edges.notes()),
        np.frombuffer(joined.words, np.int32).reshape(-1, 6),
    )


_BREAK = "\n\n"


def _parts(page: Record, edges: PageEdges, number: int) -> list[Part]:
    """The paragraphs of a page without footnotes and repeated edges."""
    parts = []
    for paragraph, record in enumerate(page.get("parts", ())):
        if record["kind"] == NOTE:
            continue
        lines = []
        for line in range(len(record["lines"])):
            if (paragraph, line) not in edges.running[number]:
                lines.append((paragraph, line))
        if lines:
            parts.append(_part(page, lines, record["kind"], record["table"]))
    return parts


def _aside(
    page: Record, edges: PageEdges, number: int
) -> tuple[list[Part], list[Part]]:
    """What is not of the running text: at the top of the page, and at its foot."""
    top = [_part(page, row, NOTE) for row in edges.read_once[number][TOP]]
    foot = []
    for paragraph, record in enumerate(page.get("parts", ())):
        if record["kind"] != NOTE:
            continue
        lines = []
        for line in range(len(record["lines"])):
            if (paragraph, line) not in edges.running[number]:
                lines.append((paragraph, line))
        if lines:
            foot.append(_part(page, lines, NOTE))
    for value in page.get("values", ()):
        n_words = len(value.split())
        foot.append(Part(value, [0, 0, 0, 0] * n_words, NOTE, 0))
    foot += [_part(page, row, NOTE) for row in edges.read_once[number][BOTTOM]]
    return top, foot


def _part(page: Record, lines: Sequence[EdgeLine], kind: str, table: int = 0) -> Part:
    texts = []
    boxes: list[int] = []
    for paragraph, line in lines:
        text, line_boxes = page["parts"][paragraph]["lines"][line]
        texts.append(text)
        boxes += line_boxes
    size = page["parts"][lines[0][0]]["size"]
    return Part("\n".join(texts), boxes, kind, size, table)


def _page_goes_on(before: Sequence[Part], after: Sequence[Part]) -> bool:
    """Whether a sentence seems to run from one page to the next."""
    if not before or not after:
        return False
    if before[-1].kind != TEXT or after[0].kind != TEXT:
        return False
    text_before = "\n".join(part.text for part in before if part.kind == TEXT)
    text_after = "\n".join(part.text for part in after if part.kind == TEXT)
    if ends_sentence(before[-1].text):
        return False
    return sentence_goes_on(text_before, text_after)


def _with_aside(
    parts: list[Part],
    aside: tuple[list[Part], list[Part]],
    *,
    begun: bool,
    ends_open: bool,
) -> list[Part]:
    """A page's paragraphs with what stands aside, where it cuts no sentence.

    ``begun`` says that the page begins within a sentence, ``ends_open`` that its last
    sentence goes on.
    """
    top, foot = aside
    if not begun:
        parts = top + parts
        top = []
    if not ends_open:
        return parts + top + foot
    between = top + foot
    if not between:
        return parts
    last = parts[-1]
    split = _split_at_last_sentence(last) if begun and len(parts) == 1 else None
    if split is not None:
        return [split[0], *between, split[1]]
    if begun and len(parts) == 1:
        return parts + between  # the whole page is one sentence
    return [*parts[:-1], *between, last]


def _split_at_last_sentence(part: Part) -> tuple[Part, Part] | None:
    """A paragraph cut before its last sentence, or None if it has only one."""
    ends = [match.end() for match in _SENTENCE_END.finditer(part.text)]
    if not ends:
        return None
    text = part.text[: ends[-1]]
    boxes = 4 * len(text.split())
    first = part._replace(text=text.rstrip(), boxes=part.boxes[:boxes])
    second = part._replace(text=part.text[ends[-1] :], boxes=part.boxes[boxes:])
    return first, second


def heading_levels(pages: Sequence[Sequence[Part]]) -> dict[float, int]:
    """Heading levels by font size, the largest first.

    Bold fonts have negative sizes. If most of the text is bold, bold says nothing. A
    size of 0 is not known.
    """
    sizes: Counter[float] = Counter()
    candidates = set()
    for parts in pages:
        for part in parts:
            if part.size == 0:
                continue
            sizes[part.size] += len(part.text)
            if part.kind == TEXT:
                candidates.add(part.size)
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    usual = abs(body)
    large = {abs(size) for size in candidates if abs(size) >= LARGER * usual}
    levels = {}
    for number, size in enumerate(sorted(large, reverse=True), start=1):
        levels[size] = min(number, 6)
    below = min(len(levels) + 1, 6)
    for size in candidates:
        if size < 0 and -size in levels:
            levels[size] = levels[-size]
        elif size < 0 and -size >= usual and body > 0:
            levels[size] = below
    return levels


def _headings(parts: Sequence[Part], levels: dict[float, int]) -> set[int]:
    """Which paragraphs of a page are headings.

    Several of one size in a row are text, such as the points of a slide.
    """
    headings: set[int] = set()
    for _, group in groupby(enumerate(parts), key=lambda part: part[1].size):
        row: list[int] = []
        for number, part in group:
            if _is_heading(part, levels):
                row.append(number)
            else:
                headings |= _few(row)
                row = []
        headings |= _few(row)
    return headings


def _few(row: list[int]) -> set[int]:
    return set(row) if len(row) <= _MOST_IN_A_ROW else set()


def _is_heading(part: Part, levels: dict[float, int]) -> bool:
    """Whether a paragraph seems to be a heading: short, in larger or bold letters."""
    text = part.text
    if part.kind != TEXT or part.size not in levels or len(text) > _LONGEST_HEADING:
        return False
    if text.count("\n") >= _MOST_LINES or len(text) < 2 or _WIDE_GAP in text:
        return False
    if not any(map(str.isalpha, text)) or text.rstrip().endswith(_SENTENCE_ENDS):
        return False
    is_larger = abs(part.size) in levels
    has_number = any(map(str.isdigit, text)) and not _NUMBERED.match(text)
    if has_number and not is_larger:
        return False  # a bold line with a sum, for example
    return _CAPTION.match(text) is None


class _Joined:
    """Collects the texts, blocks and words of pages."""

    def __init__(self, levels: dict[float, int]) -> None:
        self.levels = levels
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.blocks: list[Block] = []
        # start, end and box of each word: 24 bytes, for a million words in a book
        self.words = array("i")
        self._length = 0
        self._head: tuple[int, int, int] = (0, 0, 0)  # table, and span of its head

    def add_page(
        self, parts: Sequence[Part], text: str, body: str, goes_on: bool
    ) -> None:
        """Add a page whose paragraphs have a text, written as ``body``."""
        if self._length and body:
            separator = "\n" if goes_on else _BREAK
            self.texts.append(separator)
            self._length += len(separator)
        self.starts.append(self._length)
        self._head = (0, 0, 0)
        spans = _word_spans(text, body)
        headings = _headings(parts, self.levels)
        boxes = array("i")
        first = 0
        for part_number, part in enumerate(parts):
            boxes.extend(part.boxes)
            end = first + len(part.boxes) // 4
            if end > first:
                start = self._length + int(spans[first, 0])
                stop = self._length + int(spans[end - 1, 1])
                self._add_block(part, start, stop, part_number in headings)
            first = end
        self._add_words(spans[:first], boxes)
        self.texts.append(body)
        self._length += len(body)

    def _add_words(self, spans: NDArray[np.int32], boxes: "array[int]") -> None:
        """Add the words of a page that have a place on it."""
        places = np.frombuffer(boxes, np.int32).reshape(-1, 4)
        has_place = places.any(axis=1)
        words = np.hstack([spans + self._length, places])[has_place]
        self.words.frombytes(words.astype(np.int32).tobytes())

    def _add_block(self, part: Part, start: int, end: int, is_heading: bool) -> None:
        table, head_start, head_end = self._head
        if part.kind == HEAD:
            self._head = (part.table, start, end)
            self.blocks.append(Block(start, end, "row"))
        elif part.kind == ROW:
            has_head = part.table and table == part.table
            header = (head_start, head_end) if has_head else None
            self.blocks.append(Block(start, end, "row", header))
        elif part.kind == NOTE:
            self.blocks.append(Block(start, end, "item"))
        elif is_heading:
            level = self.levels[part.size]
            title = " ".join(part.text.translate(LIGATURES).split())
            self.blocks.append(Block(start, end, "heading", level=level, title=title))


def _word_spans(text: str, body: str) -> NDArray[np.int32]:
    """Where the words of a page are in its text with divided words joined.

    Starts and ends, shape ``(words, 2)``.
    """
    spans: list[int] = []
    cursor = 0
    for word in text.split():
        if not word.isascii():
            word = word.translate(LIGATURES)
        start = body.index(word[0], cursor)
        cursor = start + len(word)
        # the hyphen was removed
        if word[-1] in HYPHENS and body[cursor - 1 : cursor] != word[-1]:
            cursor -= 1
        spans += (start, cursor)
    return np.array(spans, np.int32).reshape(-1, 2)
