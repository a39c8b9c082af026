"""What stands on one page of a PDF: strips of words, and lines made of them.

Coordinates are in points with the page turned so that its letters are upright, and
grow to the right and to the top.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

Corners = tuple[int, int, int, int]
"""Left, bottom, right and top of a word on the page, in tenths of a point."""

WIDE_GAP = 1.2
"""A gap of this many letter sizes within a line parts two cells."""

_LEAST_OVERLAP = 0.5  # share of the lower height that strips of one line have in common
_STEP_BACK = (
    0.3  # letter sizes by which a strip of a line may begin before the last end
)

# What numbers a clause or marks an item, before a wide gap.
_MARKER = re.compile(
    r"\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-z]{1,2}|[ivxlcIVXLC]{1,6})[.)]{1,2}"
    r"|\d{1,3}(?:\.\d{1,3}){1,4}|[•‣▪◦●○■□➢➤·–—*-]"  # noqa: RUF001
)
_NUMBER = re.compile(r"\d{1,3}")
_FEWEST_AFTER_NUMBER = 4  # words; after fewer, a bare number is a cell of a table
_LETTER = re.compile(r"[^\W\d_]")


class Strip(NamedTuple):
    """Words that stand beside each other without a wide gap."""

    words: tuple[str, ...]
    boxes: tuple[Corners, ...]
    left: float
    bottom: float
    right: float
    top: float
    size: float  # of its letters, in points
    bold: bool
    turned: bool = False  # its letters do not stand as most of the page's do


class Line(NamedTuple):
    """Strips of one line, in reading order."""

    strips: tuple[Strip, ...]
    cells: tuple[Strip, ...]  # its strips, joined where no wide gap parts them
    left: float
    bottom: float
    right: float
    top: float
    size: float  # of most of its letters
    bold: bool  # whether all its strips are
    text: str  # its words, with two spaces between cells

    @property
    def begins_item(self) -> bool:
        """Whether a number or a mark stands before a gap and text."""
        return len(self.cells) == 1 and _is_item(self.strips)

    @property
    def words(self) -> list[str]:
        """All its words."""
        return [word for strip in self.strips for word in strip.words]

    @property
    def boxes(self) -> list[Corners]:
        """The boxes of its words."""
        return [box for strip in self.strips for box in strip.boxes]


def line_of(strips: Sequence[Strip]) -> Line:
    """The line that strips in reading order make."""
    if len(strips) == 1:
        return _line_of_one(strips[0])
    longest = max(strips, key=lambda strip: strip.right - strip.left)
    cells = [strips[0]]
    for strip in strips[1:]:
        if distance(cells[-1], strip) > WIDE_GAP * strip.size:
            cells.append(strip)
        else:
            cells[-1] = joined(cells[-1], strip)
    if len(cells) == 2 and _is_item(cells):
        cells = [joined(*cells)]
    return Line(
        tuple(strips),
        tuple(cells),
        min(strip.left for strip in strips),
        min(strip.bottom for strip in strips),
        max(strip.right for strip in strips),
        max(strip.top for strip in strips),
        longest.size,
        all(strip.bold for strip in strips),
        "  ".join(" ".join(cell.words) for cell in cells),
    )


def _is_item(cells: Sequence[Strip]) -> bool:
    """Whether the first of some cells numbers or marks the text after it.

    A clause of a contract stands so, as do the points of a list.
    """
    marker = cells[0].words
    following = cells[1].words if len(cells) > 1 else ()
    if len(marker) != 1 or not any(map(_LETTER.search, following)):
        return False
    if _NUMBER.fullmatch(marker[0]):
        return len(following) >= _FEWEST_AFTER_NUMBER
    return _MARKER.fullmatch(marker[0]) is not None


def _line_of_one(strip: Strip) -> Line:
    """The same for one strip, as most lines are."""
    return Line(
        (strip,),
        (strip,),
        strip.left,
        strip.bottom,
        strip.right,
        strip.top,
        strip.size,
        strip.bold,
        " ".join(strip.words),
    )


def joined(first: Strip, second: Strip) -> Strip:
    """One strip of two that stand beside each other."""
    return first._replace(
        words=first.words + second.words,
        boxes=first.boxes + second.boxes,
        left=min(first.left, second.left),
        bottom=min(first.bottom, second.bottom),
        right=max(first.right, second.right),
        top=max(first.top, second.top),
        bold=first.bold and second.bold,
    )


def lines_of(strips: list[Strip]) -> list[Line]:
    """Lines of strips that are in reading order."""
    lines: list[list[Strip]] = []
    for strip in strips:
        if lines and beside(lines[-1][-1], strip):
            lines[-1].append(strip)
        else:
            lines.append([strip])
    return list(map(line_of, lines))


def beside(left: Strip, right: Strip) -> bool:
    """Whether the second strip continues the line of the first."""
    if left.turned != right.turned:
        return False
    overlap = min(left.top, right.top) - max(left.bottom, right.bottom)
    lower_height = min(left.top - left.bottom, right.top - right.bottom)
    is_apart = distance(left, right) >= -_STEP_BACK * left.size
    return is_apart and overlap >= _LEAST_OVERLAP * lower_height


def distance(first: Strip, second: Strip) -> float:
    """How far two strips are apart, below 0 if one is above a part of the other."""
    return max(second.left - first.right, first.left - second.right)
