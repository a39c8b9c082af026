"""Spans of characters: between starts, without white space, and of bounded length."""

import re
from collections.abc import Iterator
from itertools import chain, pairwise

_NOT_SPACE = re.compile(r"\S")
# A span that is too long is cut at the first of these that occurs in range.
_BREAKS = (
    re.compile(r"\n"),
    re.compile(r"(?<=[.;:!?…。；：！？])\s"),  # noqa: RUF001
    re.compile(r"\s"),
)


def spans_between(starts: Iterator[int], stop: int) -> Iterator[tuple[int, int]]:
    """The span from each start to the next, and from the last to ``stop``.

    Examples
    --------
    >>> list(spans_between(iter([0, 4, 9]), 12))
    [(0, 4), (4, 9), (9, 12)]
    """
    return pairwise(chain(starts, [stop]))


def trim_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at either side, or None if nothing is left.

    Examples
    --------
    >>> trim_span("  Two words ", 0, 12)
    (2, 11)
    """
    first = _NOT_SPACE.search(text, start, end)
    if first is None:
        return None
    start = first.start()
    return start, start + len(text[start:end].rstrip())


def cut_long_span(
    text: str, start: int, end: int, limit: int
) -> Iterator[tuple[int, int]]:
    """Cut a trimmed span into trimmed spans of at most ``limit`` characters.

    The spans are of similar length.

    Examples
    --------
    >>> list(cut_long_span("Red, blue; green and white", 0, 26, 16))
    [(0, 10), (11, 26)]
    """
    while end - start > limit:
        n_parts = -(-(end - start) // limit)
        target = start - (start - end) // n_parts
        cut = _best_cut(text, start, (start + target) // 2, target, start + limit)
        yield start, start + len(text[start:cut].rstrip())
        following = _NOT_SPACE.search(text, cut, end)
        # The span ends with a character that is not white space.
        assert following is not None
        start = following.start()
    yield start, end


def _best_cut(text: str, start: int, low: int, target: int, high: int) -> int:
    """The best position to cut at between ``low`` and ``high``, near ``target``."""
    for pattern in _BREAKS:
        positions = [match.start() for match in pattern.finditer(text, low, high + 1)]
        if positions:
            return min(positions, key=lambda position: abs(position - target))
    return _cut_between_characters(text, start, low, target, high)


def _cut_between_characters(
    text: str, start: int, low: int, target: int, high: int
) -> int:
    """The last position at or before ``target`` between characters as they are shown.

    Such a character may be several of Python's, as a flag is. If there is none, it is
    the first position after ``target``.
    """
    import regex  # Only here, since few texts have such spans.

    # `regex` pairs the halves of flags from the beginning of what it gets.
    positions: list[int] = []
    for shown in regex.finditer(r"\X", text[start : high + 1]):
        if start + shown.start() > low:
            positions.append(start + shown.start())
    before = [position for position in positions if position <= target]
    return (before[-1:] + positions + [target])[0]
