"""The order in which the strips of a page are read: columns one after the other.

A page is cut at gutters, upright stretches without letters. What stands on both sides
of a gutter is columns if it is running text, or if the file draws one side after the
other; else it is rows, such as those of a table.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.readers.pdf_lines import Strip

_Edges = NDArray[np.float64]

MOST_STRIPS = 4_000
"""A page with more strips, such as a map, is read in the order of the file."""

_FEWEST_LINES = 3  # on each side of a gutter
_LEAST_GUTTER = 0.7  # width in letter sizes
_NARROW = 0.15  # share of the width; narrower strips do not end columns
_STRAY = 10  # one of so many strips may stand in a gutter
_DEEPEST = 4  # a page is cut at most so many times, one cut within the other
_MOST_GUTTERS = 12  # that are tried
_STEPS = 300  # positions across a page where a gutter may be
_SHARES = np.linspace(0.0, 1.0, _STEPS)
_WORDS_OF_PROSE = 4.0  # on average, in a line of running text
_WIDTH_OF_PROSE = 0.7  # most lines of running text are so much of their column
_WORDS_OF_CELLS = 4.0  # the cells of a table have fewer words on average
_ALIGNED = 0.8  # share of lines that have a neighbour at the same height


class _Band(NamedTuple):
    """Strips between two that cross a gutter, or one that crosses it."""

    left: list[int]  # in the order of the file
    right: list[int]
    crossing: list[int]


def reading_order(strips: Sequence[Strip]) -> list[list[Strip]]:
    """Columns and stretches across them, one after the other, each in reading order.

    Strips whose letters are turned come last.
    """
    upright = [strip for strip in strips if not strip.turned]
    turned = [strip for strip in strips if strip.turned]
    flows = [upright]
    if len(upright) <= MOST_STRIPS:
        flows = []
        for flow in _flows(upright, _DEEPEST):
            flows.append(_from_top_to_bottom(flow))
    flows.append(turned)
    return [flow for flow in flows if flow]


def _flows(strips: list[Strip], depth: int) -> list[list[Strip]]:
    """Strips that belong together, in the order of the file within each flow."""
    if depth == 0 or len(strips) < 2 * _FEWEST_LINES:
        return [strips]
    bands = _best_bands(strips)
    if not bands:
        return [strips]
    flows: list[list[Strip]] = []
    across: list[int] = []
    for band in bands:
        if not _is_columns(strips, band):
            across += band.left + band.right + band.crossing
            continue
        flows.append([strips[number] for number in sorted(across)])
        across = []
        for side in (band.left, band.right):
            flows += _flows([strips[number] for number in side], depth - 1)
    flows.append([strips[number] for number in sorted(across)])
    return [flow for flow in flows if flow]


def _best_bands(strips: list[Strip]) -> list[_Band]:
    """Bands at the gutter with most lines on both sides, none without a gutter."""
    best: list[_Band] = []
    best_lines = 0
    gutters = _gutters(strips)
    if not gutters:
        return best
    order = sorted(range(len(strips)), key=lambda number: -strips[number].top)
    lefts = np.array([strips[number].left for number in order])
    rights = np.array([strips[number].right for number in order])
    for gutter in gutters:
        if _most_lines(lefts, rights, gutter) <= best_lines:
            continue  # most gutters are such, and to compare arrays is fast
        bands = _bands(strips, order, gutter)
        lines = 0
        for band in bands:
            if _is_columns(strips, band):
                lines += min(len(band.left), len(band.right))
        if lines > best_lines:
            best = bands
            best_lines = lines
    return best


def _most_lines(lefts: _Edges, rights: _Edges, gutter: float) -> int:
    """How many lines both sides of a gutter have, if all bands there are columns.

    Edges are those of strips from top to bottom.
    """
    width = rights.max() - lefts.min()
    ends_band = (lefts < gutter) & (gutter < rights)
    ends_band &= rights - lefts >= _NARROW * width
    is_left = lefts + rights <= 2 * gutter
    bands = np.cumsum(ends_band)
    n_bands = int(bands[-1]) + 1
    n_left = np.bincount(bands[~ends_band & is_left], minlength=n_bands)
    n_right = np.bincount(bands[~ends_band & ~is_left], minlength=n_bands)
    lines = np.minimum(n_left, n_right)
    return int(lines[lines >= _FEWEST_LINES].sum())


def _gutters(strips: list[Strip]) -> list[float]:
    """Positions across the page that few strips cross, with strips on both sides."""
    lefts = sorted(strip.left for strip in strips)
    rights = sorted(strip.right for strip in strips)
    if rights[_FEWEST_LINES - 1] > lefts[-_FEWEST_LINES]:
        return []  # no position has so many on both sides, as in most books
    positions = lefts[0] + (rights[-1] - lefts[0]) * _SHARES
    ended = np.searchsorted(rights, positions, side="right")
    begun = np.searchsorted(lefts, positions, side="left")
    crossing = begun - ended  # strips that begin before and end after a position
    to_the_right = len(strips) - begun
    # stretches of positions that equally many strips cross
    changes = np.flatnonzero(crossing[1:] != crossing[:-1]) + 1
    firsts = np.array([0, *changes])
    lasts = np.array([*changes, _STEPS])
    levels = crossing[firsts]
    falls = levels[1:] < levels[:-1]
    after_fall = np.array([True, *falls])
    before_rise = np.array([*~falls, True])
    middles = (firsts + lasts - 1) // 2
    enough = np.minimum(ended[middles], to_the_right[middles]) >= _FEWEST_LINES
    candidates = np.flatnonzero(after_fall & before_rise & enough)
    middles = middles[candidates]
    widths = (lasts - firsts)[candidates]
    # lowest first, then widest, then leftmost
    order = np.lexsort((middles, -widths, levels[candidates]))[:_MOST_GUTTERS]
    return list(positions[middles[order]].tolist())


def _bands(strips: list[Strip], order: list[int], gutter: float) -> list[_Band]:
    """Bands from top to bottom."""
    bands = [_Band([], [], [])]
    width = max(strip.right for strip in strips) - min(strip.left for strip in strips)
    for number in order:
        strip = strips[number]
        crosses = strip.left < gutter < strip.right
        if not crosses or strip.right - strip.left < _NARROW * width:
            is_left = strip.left + strip.right <= 2 * gutter
            side = bands[-1].left if is_left else bands[-1].right
            side.append(number)
        else:
            bands.append(_Band([], [], [number]))
            bands.append(_Band([], [], []))
    for band in bands:
        band.left.sort()
        band.right.sort()
    return bands


def _is_columns(strips: list[Strip], band: _Band) -> bool:
    """Whether the sides of a band are read one after the other."""
    left = [strips[number] for number in band.left]
    right = [strips[number] for number in band.right]
    if min(len(left), len(right)) < _FEWEST_LINES:
        return False
    size = median(strip.size for strip in left + right)
    # A few stray letters, such as those of a figure, may stand in the gutter.
    left_end = sorted(strip.right for strip in left)[-1 - len(left) // _STRAY]
    right_start = sorted(strip.left for strip in right)[len(right) // _STRAY]
    if right_start - left_end < _LEAST_GUTTER * size:
        return False
    if not _side_by_side(left, right):
        return False
    left_is_prose = _is_prose(left)
    right_is_prose = _is_prose(right)
    if left_is_prose and right_is_prose:
        return True
    if _has_aligned_cells(left, right):
        return False
    return _changes_of_side(band) < min(len(left), len(right))


def _side_by_side(left: list[Strip], right: list[Strip]) -> bool:
    """Whether most of the shorter side has the other beside it."""
    tops = [max(strip.top for strip in side) for side in (left, right)]
    bottoms = [min(strip.bottom for strip in side) for side in (left, right)]
    heights = [top - bottom for top, bottom in zip(tops, bottoms, strict=True)]
    return min(tops) - max(bottoms) >= min(heights) / 2


def _is_prose(side: list[Strip]) -> bool:
    """Whether lines of a side are filled with words."""
    words = sum(len(strip.words) for strip in side) / len(side)
    width = max(strip.right for strip in side) - min(strip.left for strip in side)
    wide = [strip.right - strip.left >= _WIDTH_OF_PROSE * width for strip in side]
    return words >= _WORDS_OF_PROSE and sum(wide) * 2 > len(side)


def _has_aligned_cells(left: list[Strip], right: list[Strip]) -> bool:
    """Whether the sides are short cells at the same heights."""
    words = sum(len(strip.words) for strip in left + right) / len(left + right)
    if words >= _WORDS_OF_CELLS or _is_prose(left) or _is_prose(right):
        return False
    left_heights = {round(strip.bottom) for strip in left}
    right_heights = {round(strip.bottom) for strip in right}
    near = left_heights | {height + 1 for height in left_heights}
    aligned = sum(height in near for height in right_heights)
    return aligned >= _ALIGNED * max(len(left_heights), len(right_heights))


def _changes_of_side(band: _Band) -> int:
    """How often the file goes from one side of a band to the other."""
    sides = [(number, False) for number in band.left]
    sides += [(number, True) for number in band.right]
    sides.sort()
    changes = 0
    for (_, side_before), (_, side) in pairwise(sides):
        changes += side != side_before
    return changes


def _from_top_to_bottom(strips: list[Strip]) -> list[Strip]:
    """The strips of one flow in reading order.

    Stretches of the file that go down the page stay as they are, since the file knows
    the order within a formula. They are sorted by height, and where two of them stand
    beside each other, their strips are.
    """
    stretches: list[list[Strip]] = []
    lowest = 0.0
    for strip in strips:
        if not stretches or strip.bottom > lowest + strip.size:
            stretches.append([])
            lowest = strip.bottom
        stretches[-1].append(strip)
        lowest = min(lowest, strip.bottom)
    stretches.sort(key=lambda stretch: -max(strip.top for strip in stretch))
    ordered: list[list[Strip]] = []
    floor = 0.0  # the lowest edge of what is ordered last
    mixed = False
    for stretch in stretches:
        top = max(strip.top for strip in stretch)
        bottom = min(strip.bottom for strip in stretch)
        if ordered and top > floor + stretch[0].size / 2:
            ordered[-1] += stretch
            floor = min(floor, bottom)
            mixed = True
            continue
        if mixed:
            ordered[-1] = _by_rows(ordered[-1])
            mixed = False
        ordered.append(stretch)
        floor = bottom
    if mixed:
        ordered[-1] = _by_rows(ordered[-1])
    return [strip for stretch in ordered for strip in stretch]


def _by_rows(strips: list[Strip]) -> list[Strip]:
    """Strips in rows from top to bottom, and from left to right in each."""
    rows: list[list[Strip]] = []
    middle = 0.0
    for strip in sorted(strips, key=lambda strip: -(strip.top + strip.bottom)):
        height = strip.top - strip.bottom
        strip_middle = (strip.top + strip.bottom) / 2
        if not rows or middle - strip_middle > height / 2:
            rows.append([])
            middle = strip_middle
        rows[-1].append(strip)
    for row in rows:
        row.sort(key=lambda strip: strip.left)
    return [strip for row in rows for strip in row]
