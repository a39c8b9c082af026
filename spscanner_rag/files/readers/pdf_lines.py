"""What stands on one page of a PDF: strips of words, and lines made of them.

Coordinates are in points with the page turned so that its letters are upright, and
grow to the right and to the top.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Corners = tuple[int, int, int, int]
"""Left, bottom, right and top of a word on the page, in tenths of a point."""

WIDE_GAP = 1.2
"""A gap of this many letter sizes within a line parts two cells."""

_LEAST_OVERLAP = 0.5  # share of the lower height that strips of one line have in common
_STEP_BACK = (
    0.3  # letter sizes by which a strip of a line may begin before the last end
)


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


@dataclass(frozen=True)
class Line:
    """Strips of one line, in reading order."""

    strips: tuple[Strip, ...]

    @cached_property
    def left(self) -> float:
        """Its left edge."""
        return min(strip.left for strip in self.strips)

    @cached_property
    def right(self) -> float:
        """Its right edge."""
        return max(strip.right for strip in self.strips)

    @cached_property
    def top(self) -> float:
        """Its upper edge."""
        return max(strip.top for strip in self.strips)

    @cached_property
    def bottom(self) -> float:
        """Its lower edge."""
        return min(strip.bottom for strip in self.strips)

    @cached_property
    def size(self) -> float:
        """The size of most of its letters."""
        longest = max(self.strips, key=lambda strip: strip.right - strip.left)
        return longest.size

    @cached_property
    def bold(self) -> bool:
        """Whether all its strips are bold."""
        return all(strip.bold for strip in self.strips)

    @cached_property
    def cells(self) -> tuple[Strip, ...]:
        """Its strips, joined where no wide gap parts them."""
        cells = [self.strips[0]]
        for strip in self.strips[1:]:
            if distance(cells[-1], strip) > WIDE_GAP * strip.size:
                cells.append(strip)
            else:
                cells[-1] = joined(cells[-1], strip)
        return tuple(cells)

    @cached_property
    def words(self) -> list[str]:
        """All its words."""
        return [word for strip in self.strips for word in strip.words]

    @cached_property
    def boxes(self) -> list[Corners]:
        """The boxes of its words."""
        return [box for strip in self.strips for box in strip.boxes]

    @cached_property
    def text(self) -> str:
        """Its words, with two spaces between cells."""
        return "  ".join(" ".join(cell.words) for cell in self.cells)


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
    return [Line(tuple(line)) for line in lines]


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
