"""Numbers of lines at the margin of a PDF, as in pleadings and papers under review.

They would stand within the sentences of the text.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from spscanner_rag.files.readers.pdf_lines import Line, line_of

_NUMBER = re.compile(r"\d{1,4}")
_FEWEST = 5  # numbered lines
_CONSECUTIVE = 0.8  # share of the numbers that follow the one before
_WITHIN_SENTENCE = 1 / 3  # share of the lines that begin with a small letter
_SAME_EDGE = 1.0  # letter sizes


def without_line_numbers(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """The lines of one flow without numbers at the margin, and how many there were."""
    numbers = [_number_before(line) for line in lines]
    numbered = []
    for line, number in zip(lines, numbers, strict=True):
        if number is not None and len(line.strips) > 1:
            numbered.append((line, number))
    if not _are_line_numbers(numbered):
        return list(lines), 0
    left = min(line.left for line, _ in numbered)
    remaining: list[Line] = []
    count = 0
    for line, number in zip(lines, numbers, strict=True):
        at_margin = number is not None and line.left - left < 2 * line.size
        count += at_margin
        if not at_margin:
            remaining.append(line)
        elif len(line.strips) > 1:
            remaining.append(line_of(line.strips[1:]))
    return remaining, count


def _number_before(line: Line) -> int | None:
    """The number that stands apart at the beginning of a line, or alone on it."""
    words = line.strips[0].words
    if len(words) != 1 or _NUMBER.fullmatch(words[0]) is None:
        return None
    return int(words[0])


def _are_line_numbers(numbered: Sequence[tuple[Line, int]]) -> bool:
    """Whether numbers count the lines of running text, as those of a list do not."""
    if len(numbered) < _FEWEST:
        return False
    n_consecutive = 0
    for (_, before), (_, number) in pairwise(numbered):
        n_consecutive += number == before + 1
    if n_consecutive < _CONSECUTIVE * (len(numbered) - 1):
        return False
    strips = [line.strips[0] for line, _ in numbered]
    lefts = [strip.left for strip in strips]
    rights = [strip.right for strip in strips]
    width = min(max(lefts) - min(lefts), max(rights) - min(rights))
    if width > _SAME_EDGE * strips[0].size:
        return False
    n_within = sum(line.strips[1].words[0][:1].islower() for line, _ in numbered)
    return n_within >= _WITHIN_SENTENCE * len(numbered)
