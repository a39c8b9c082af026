"""Lines of a PDF's page made into paragraphs, rows of tables and footnotes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from spscanner_rag.files.readers.pdf_columns import reading_order
from spscanner_rag.files.readers.pdf_line_numbers import without_line_numbers
from spscanner_rag.files.readers.pdf_lines import Line, Strip, line_of, lines_of

TEXT = "text"
ROW = "row"  # of a table, or another line with a wide gap
HEAD = "head"  # the first row of a table, if it seems to name the columns
NOTE = "note"  # a footnote

_SMALLER = 0.93  # letters of this share of the usual size are those of footnotes
_DROP_CAP = 1.7  # its letter is so many times as large as those beside it
_MOST_DROP_CAPS = 50  # on a page
_WORDS_OF_ONE_LETTER = ("A", "I", "O")
_OTHER_SIZE = 0.08  # sizes that differ by this share are different
_LONG_STEP = 1.35  # of the usual distance of lines: a paragraph ends
_NEAR = 3  # lines above and below that show how wide a column is
_LOOSE = 1.4  # letter sizes from line to line: the lines may be points of a slide
_ALIGNED = 0.6  # letter sizes
_ROOM = 0.5  # letter sizes that stay free where the next word would have fitted
_CENTERED = 2.0  # points
_SAME_EDGE = 2.0  # points
_SENTENCE_ENDS = (".", "!", "?", ":", "…", "。", "！", "？")  # noqa: RUF001
_CLOSING = "\"'”’»)]}*0123456789†‡ "  # noqa: RUF001
_BULLET = re.compile(
    r"[•‣▪◦●○■□➢➤·–—*-]\s|\(?[0-9]{1,3}[.)]\s|\(?[A-Za-z][.)]\s|\([ivxlc]+\)\s"  # noqa: RUF001
)
_CLAUSE = re.compile(r"\d{1,2}\.\d{1,2}((?:\.\d{1,2}){1,3})?\.?\s+[^\W\d_]")
_DIVIDED = re.compile(r"[^\W\d_]{2}[-\u2010\u00ad]\Z")
_NOTE_MARK = re.compile(r"[\d*†‡§¶]{1,3}[.)]?\s?\S")
_CAPTION = re.compile(r"(Figure|Fig\.|Table|Abbildung|Tabelle|Abb\.|Tab\.)\s?\d")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


@dataclass
class Paragraph:
    """Lines that belong together."""

    lines: list[Line]
    kind: str = TEXT
    flow: int = 0  # the column, or stretch across columns, that it is in
    table: int = 0  # rows of one table share a number above 0
    line_numbers: int = 0  # that were left out of the flow that it begins

    @property
    def text(self) -> str:
        """Its lines."""
        return "\n".join(line.text for line in self.lines)

    @property
    def size(self) -> float:
        """The size of most of its letters."""
        return median(line.size for line in self.lines)

    @property
    def bold(self) -> bool:
        """Whether all its lines are bold."""
        return all(line.bold for line in self.lines)

    @property
    def is_caption(self) -> bool:
        """Whether it begins as the caption of a figure or a table."""
        return _CAPTION.match(self.lines[0].text) is not None


def paragraphs_of(strips: Sequence[Strip]) -> list[Paragraph]:
    """The paragraphs of a page, in reading order.

    A sentence that runs on in the next column is in one paragraph, and what stands
    between comes before it.
    """
    paragraphs: list[Paragraph] = []
    tables = 0
    for number, flow in enumerate(reading_order(_with_drop_caps(strips))):
        lines, n_numbers = without_line_numbers(lines_of(flow))
        for paragraph in _rows_and_text(lines):
            paragraph.line_numbers = n_numbers
            n_numbers = 0
            paragraph.flow = number
            if paragraph.table:
                paragraph.table += tables
            paragraphs.append(paragraph)
        tables = max([tables, *(paragraph.table for paragraph in paragraphs)])
    _mark_footnotes(paragraphs)
    return _run_on(paragraphs)


def _with_drop_caps(strips: Sequence[Strip]) -> list[Strip]:
    """Strips with each large first letter joined to the word that it begins."""
    joined = list(strips)
    letters = [strip for strip in strips if _may_be_drop_cap(strip)]
    for letter in letters[:_MOST_DROP_CAPS]:
        beside = [strip for strip in joined if _begins_with(letter, strip)]
        if not beside:
            continue
        strip = max(beside, key=lambda strip: strip.top)
        if letter.words[0] in _WORDS_OF_ONE_LETTER and _is_word(strip, joined):
            continue
        joined.remove(letter)
        joined[joined.index(strip)] = _joined_with_letter(letter, strip)
    return joined


def _may_be_drop_cap(strip: Strip) -> bool:
    return (
        len(strip.words) == 1 and len(strip.words[0]) == 1 and strip.words[0].isupper()
    )


def _begins_with(letter: Strip, strip: Strip) -> bool:
    """Whether a large letter stands directly before a line."""
    if letter.size < _DROP_CAP * strip.size or not strip.words[0][:1].isalpha():
        return False
    if not 0 <= strip.left - letter.right <= letter.size:
        return False
    middle = (strip.bottom + strip.top) / 2
    return letter.bottom <= middle <= letter.top + strip.size / 2


def _is_word(strip: Strip, strips: Sequence[Strip]) -> bool:
    """Whether the first word of a strip is a word of its own elsewhere."""
    word = strip.words[0]
    return any(word in other.words for other in strips if other is not strip)


def _joined_with_letter(letter: Strip, strip: Strip) -> Strip:
    left, bottom, right, top = letter.boxes[0]
    first = strip.boxes[0]
    around = (
        min(left, first[0]),
        min(bottom, first[1]),
        max(right, first[2]),
        max(top, first[3]),
    )
    return strip._replace(
        words=(letter.words[0] + strip.words[0], *strip.words[1:]),
        boxes=(around, *strip.boxes[1:]),
        left=letter.left,
    )


def _rows_and_text(lines: list[Line]) -> list[Paragraph]:
    """Paragraphs of one flow."""
    paragraphs: list[Paragraph] = []
    running: list[Line] = []
    table = 0
    rows: list[Paragraph] = []
    for line in lines:
        before = running[-1] if running else None
        if len(line.cells) > 1 and not _is_stretched(before, line):
            if running:
                paragraphs += _text_paragraphs(running)
                running = []
            if not rows:
                table += 1
            rows.append(Paragraph([line], ROW, table=table))
            paragraphs.append(rows[-1])
        elif rows and _continues_row(rows[-1], line):
            rows[-1].lines.append(line)
        else:
            _mark_head(rows)
            rows = []
            running.append(line)
    _mark_head(rows)
    for paragraph in paragraphs:
        if paragraph.kind in (ROW, HEAD) and len(paragraph.lines) > 1:
            paragraph.lines = _by_cells(paragraph.lines)
    return paragraphs + _text_paragraphs(running)


def _by_cells(lines: Sequence[Line]) -> list[Line]:
    """The lines of a row, cell by cell, so that each cell is read to its end.

    Further lines continue the cell whose beginning is nearest to theirs.
    """
    cells = lines[0].cells
    strips: list[list[Strip]] = [[cell] for cell in cells]
    for line in lines[1:]:
        for strip in line.strips:
            distances = [abs(cell.left - strip.left) for cell in cells]
            strips[distances.index(min(distances))].append(strip)
    return [line_of([strip]) for cell in strips for strip in cell]


def _is_stretched(before: Line | None, line: Line) -> bool:
    """Whether wide gaps only fill a line of running text up to its margin."""
    if before is None or ends_sentence(before.text):
        return False
    edges = (before.left - line.left, before.right - line.right)
    same_edges = max(map(abs, edges)) < _SAME_EDGE
    return same_edges and line.text[:1].islower()


def _continues_row(row: Paragraph, line: Line) -> bool:
    """Whether a line continues a later cell of the row above it."""
    last = row.lines[-1]
    if last.bottom - line.top > line.size / 2 or last.size != line.size:
        return False
    for cell in row.lines[0].cells[1:]:
        if abs(cell.left - line.left) < _ALIGNED * line.size:
            return True
    return False


def _mark_head(rows: list[Paragraph]) -> None:
    """Mark the first row of a table if it seems to name the columns."""
    if len(rows) < 3 or not _aligned(rows[0].lines[0], rows[1].lines[0]):
        for row in rows:
            row.table = 0
        return
    head = rows[0]
    others = rows[1:]
    with_digits = sum(_has_digit(row.text) for row in others)
    is_bold = head.bold and not all(row.bold for row in others)
    if is_bold or (not _has_digit(head.text) and 2 * with_digits > len(others)):
        head.kind = HEAD


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _aligned(first: Line, second: Line) -> bool:
    """Whether two rows have cells that begin or end at the same place."""
    room = _ALIGNED * first.size
    for cell in first.cells[1:]:
        for other in second.cells[1:]:
            if (
                abs(cell.left - other.left) < room
                or abs(cell.right - other.right) < room
            ):
                return True
    return False


def _text_paragraphs(lines: list[Line]) -> list[Paragraph]:
    """Paragraphs of lines of running text."""
    if not lines:
        return []
    steps = [line.top - other.top for line, other in pairwise(lines)]
    downward = [step for step in steps if step > 0]
    usual_step = median(downward) if downward else 0.0
    groups: list[list[Line]] = [[lines[0]]]
    for line in lines[1:]:
        if _begins_paragraph(groups[-1][-1], line, usual_step):
            groups.append([line])
        else:
            groups[-1].append(line)
    paragraphs: list[Paragraph] = []
    for group in groups:
        if _is_points(group):
            paragraphs += [Paragraph([line]) for line in group]
        else:
            paragraphs += _cut_at_deliberate_breaks(group)
    return paragraphs


def _cut_at_deliberate_breaks(lines: list[Line]) -> list[Paragraph]:
    """Paragraphs that end with a line on which more would have fitted."""
    paragraphs = [Paragraph([lines[0]])]
    for number, line in enumerate(lines[1:], start=1):
        near = lines[max(0, number - _NEAR) : number + _NEAR]
        if _break_is_deliberate(lines[number - 1], line, near):
            paragraphs.append(Paragraph([line]))
        else:
            paragraphs[-1].lines.append(line)
    return paragraphs


def _begins_paragraph(before: Line, line: Line, usual_step: float) -> bool:
    """Whether a line is not of the paragraph of the line before it."""
    text = line.text
    text_before = before.text
    unfinished = not ends_sentence(text_before)
    if unfinished and text[:1].islower() and not _BULLET.match(text):
        return False
    if before.bold != line.bold:
        return True
    if abs(before.size - line.size) > _OTHER_SIZE * max(before.size, line.size):
        return True
    step = before.top - line.top
    if step <= 0 or step > _LONG_STEP * usual_step:
        return True
    if line.begins_item or _BULLET.match(text):
        return True
    # Numbers of two parts may be decimals within a sentence.
    clause = _CLAUSE.match(text)
    return clause is not None and (bool(clause[1]) or text_before.endswith((";", ":")))


def _break_is_deliberate(before: Line, line: Line, near: Sequence[Line]) -> bool:
    """Whether the first word of a line would have fitted on the line before it.

    ``near`` are lines that show how wide the column is.
    """
    first = line.text[:1]
    if not (first.isupper() or first.isdigit()):
        return False
    if before.text.endswith((",", ";")) or _DIVIDED.search(before.text):
        return False
    if _RIGHT_TO_LEFT.search(line.text):
        return False
    centers = before.left + before.right - line.left - line.right
    if abs(centers) < _CENTERED and abs(before.left - line.left) > line.size:
        return False
    words = line.words
    letters = max(1, len(line.text))
    width = (line.right - line.left) / letters * (len(words[0]) + 1)
    room = max(other.right for other in near)
    return before.right + width + _ROOM * line.size <= room


def _is_points(lines: list[Line]) -> bool:
    """Whether the lines of a paragraph are points of a list, far apart."""
    if len(lines) < 2:
        return False
    for line in lines:
        first = line.text[:1]
        if not (first.isupper() or first.isdigit()) or line.text.endswith((".", ",")):
            return False
    for before, line in pairwise(lines):
        if before.top - line.top < _LOOSE * line.size:
            return False
    widest = max(lines, key=lambda line: line.right)
    deliberate = 0
    for before, line in pairwise(lines):
        deliberate += _break_is_deliberate(before, line, [widest])
    return 2 * deliberate >= len(lines) - 1


def ends_sentence(text: str) -> bool:
    """Whether a text ends as a sentence does, where a note's number may follow.

    Examples
    --------
    >>> ends_sentence("The well was dry.3"), ends_sentence("The well was")
    (True, False)
    """
    return text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)


def _mark_footnotes(paragraphs: list[Paragraph]) -> None:
    """Mark what stands at the foot of a column in small letters."""
    sizes = [paragraph.size for paragraph in paragraphs]
    weights: dict[float, int] = {}
    for size, paragraph in zip(sizes, paragraphs, strict=True):
        weights[size] = weights.get(size, 0) + len(paragraph.text)
    if not weights:
        return
    usual = max(weights, key=lambda size: weights[size])
    is_small = [size < _SMALLER * usual for size in sizes]
    for flow in {paragraph.flow for paragraph in paragraphs}:
        column = []
        for number, paragraph in enumerate(paragraphs):
            if paragraph.flow == flow:
                column.append(number)
        has_text = not all(is_small[number] for number in column)
        notes: list[Paragraph] = []
        for number in reversed(column):
            paragraph = paragraphs[number]
            if not is_small[number] or paragraph.kind != TEXT:
                break
            notes.append(paragraph)
        marked = [bool(_NOTE_MARK.match(paragraph.text)) for paragraph in notes]
        if has_text and any(marked):
            for paragraph in notes:
                paragraph.kind = NOTE


def _run_on(paragraphs: list[Paragraph]) -> list[Paragraph]:
    """Join a sentence that runs on in the next column or below a figure."""
    ordered: list[Paragraph] = []
    open_at = -1  # the paragraph that may run on
    for paragraph in paragraphs:
        if paragraph.kind != TEXT or paragraph.is_caption:
            ordered.append(paragraph)
            continue
        if open_at >= 0 and _runs_on(ordered[open_at], paragraph):
            opened = ordered.pop(open_at)
            opened.lines += paragraph.lines
            opened.line_numbers += paragraph.line_numbers
            ordered.append(opened)
        else:
            ordered.append(paragraph)
        open_at = len(ordered) - 1
    return ordered


def _runs_on(before: Paragraph, paragraph: Paragraph) -> bool:
    """Whether a paragraph continues another one."""
    largest = max(before.size, paragraph.size)
    if abs(before.size - paragraph.size) > _OTHER_SIZE * largest:
        return False
    if before.bold != paragraph.bold or ends_sentence(before.text):
        return False
    if _BULLET.match(paragraph.text):
        return False
    if paragraph.text[:1].islower():
        return True
    if paragraph.flow == before.flow or len(before.lines) < 3:
        return False
    # In the next column: if the last line is full, the sentence goes on.
    widest = max(line.right for line in before.lines)
    last = before.lines[-1]
    return not before.bold and last.right >= widest - 2 * last.size
