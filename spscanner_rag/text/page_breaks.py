"""Whether a sentence goes on over the break between two pages."""

import re
from statistics import median

_CLOSING = "\"'”’»›」』)]}*_ "  # noqa: RUF001
_OPENING = "\"'“‘«‹「『([{*_ "  # noqa: RUF001
_SENTENCE_ENDS = ".!?…。！？"  # noqa: RUF001
_GOES_ON_AFTER = ",;-–—‐"  # noqa: RUF001
_LIST_MARKER = re.compile(r"\d{1,3}(\.\d{1,3})*[.)]?\s|[A-Za-z][.)]\s")
_FULL_LINE = 0.7  # share of the usual length of a line, from which on a line is no heading


def sentence_goes_on(before: str, after: str) -> bool:
    """Whether a sentence seems to run from the end of one page to the beginning of the next.

    It does if the page does not end like a sentence, and the next begins with a lower-case letter, or both meet in
    lines as long as the others (a heading is shorter).
    """
    end, begin = before.rstrip(), after.lstrip()
    if not end or not begin:
        return False
    last = end.rstrip(_CLOSING)[-1:]
    first = begin.lstrip(_OPENING)[:1]
    if last in _SENTENCE_ENDS or not first.isalnum() or _LIST_MARKER.match(begin):
        return False
    if first.islower() or last in _GOES_ON_AFTER:
        return True
    return _full(end.rsplit("\n", 1)[-1], end) and _full(begin.split("\n", 1)[0], begin)


def _full(line: str, page: str) -> bool:
    """Whether a line is about as long as the lines of its page are; not known for a page of less than three."""
    lengths = [len(other.strip()) for other in page.splitlines() if other.strip()]
    return len(lengths) >= 3 and len(line.strip()) >= _FULL_LINE * median(lengths)
