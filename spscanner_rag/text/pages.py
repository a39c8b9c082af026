"""What joining the pages of a document needs to know.

`page_bodies` finds running headers and footers, and `sentence_goes_on` whether a
sentence continues over a page break.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

FEWEST_PAGES = 3  # a line on fewer pages than this is never a running one
# Number of lines at each edge of a page that may be running ones; blank lines do not
# count.
EDGE_LINES = 3
_FEWEST_WORDS = 4  # of a sentence
LONGEST_LINE = 150  # a longer line, in characters, is text
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_DIGITS = re.compile(r"\d{1,9}")

_CLOSING = "\"'”’»›」』)]}*_ "  # noqa: RUF001
_OPENING = "\"'“‘«‹「『([{*_ "  # noqa: RUF001
_SENTENCE_ENDS = ".!?…。！？"  # noqa: RUF001
_GOES_ON_AFTER = ",;-–—‐"  # noqa: RUF001
_LIST_MARKER = re.compile(r"\d{1,3}(\.\d{1,3})*[.)]?\s|[A-Za-z][.)]\s")
# A line of at least this share of the usual line length is not a heading.
_FULL_LINE = 0.7


def page_bodies(
    pages: Sequence[str], numbers: Sequence[float]
) -> list[tuple[int, int]]:
    """The span of each page without its running headers and footers.

    A page without other text keeps all of it. A line is a running one if more than half
    of the pages, or of every second page, have it among the ``EDGE_LINES`` lines at the
    same edge, and at least ``FEWEST_PAGES`` pages do. Lines count as equal if they
    differ only in white space, in case, or in one number that grows with the page
    number in ``numbers``.
    """
    everything = [(0, len(page)) for page in pages]
    if len(pages) < FEWEST_PAGES:
        return everything
    tops = []
    bottoms = []
    for page in pages:  # One at a time: all lines of a document take much memory.
        lines = _visible_lines(page)
        tops.append(_before_sentence(lines[:EDGE_LINES]))
        bottoms.append(_before_sentence(lines[: -EDGE_LINES - 1 : -1]))
    headers = running_lines(_texts(tops), numbers)
    footers = running_lines(_texts(bottoms), numbers)
    bodies = []
    for number, page in enumerate(pages):
        n_header = headers[number]
        n_footer = footers[number]
        start = tops[number][n_header - 1].end if n_header else 0
        end = bottoms[number][n_footer - 1].start if n_footer else len(page)
        has_text = bool(page[start:end].strip())
        bodies.append((start, end) if has_text else everything[number])
    return bodies


class _PageLine(NamedTuple):
    start: int
    end: int  # with the line break
    text: str


def _visible_lines(page: str) -> list[_PageLine]:
    lines = []
    for match in _LINE.finditer(page):
        if text := match[0].strip():
            lines.append(_PageLine(match.start(), match.end(), text))
    return lines


def _before_sentence(edge: Sequence[_PageLine]) -> list[_PageLine]:
    """The lines of an edge up to the first that is a sentence, which is never left out.

    Terms of payment, for example, are at the foot of every invoice.
    """
    lines = []
    for line in edge:
        if is_sentence(line.text):
            break
        lines.append(line)
    return lines


def is_sentence(line: str) -> bool:
    """Whether a line seems to be a whole sentence.

    Examples
    --------
    >>> is_sentence("Payment is due in May."), is_sentence("Report of the council")
    (True, False)
    """
    ends = line.rstrip(_CLOSING)[-1:]
    return len(line.split()) >= _FEWEST_WORDS and ends != "" and ends in _SENTENCE_ENDS


def _texts(edges: Sequence[Sequence[_PageLine]]) -> list[list[str]]:
    texts = []
    for edge in edges:
        texts.append([line.text for line in edge])
    return texts


def running_lines(
    edges: Sequence[Sequence[str]],
    numbers: Sequence[float],
    *,
    fewest: int = FEWEST_PAGES,
) -> list[int]:
    """How many lines of each page's edge are running ones, from the edge inwards.

    Each edge has the lines at the top, or at the bottom, of a page. They are counted
    up to the first that is not a running one, which at least ``fewest`` pages have.
    """
    forms = []
    for edge, number in zip(edges, numbers, strict=True):
        forms.append([set(_forms(line, number)) for line in edge])
    repeated: set[str] = set()
    for some_forms in (forms, forms[::2], forms[1::2]):
        repeated |= _repeated(some_forms, fewest)
    counts = []
    for forms_of_edge in forms:
        count = 0
        for forms_of_line in forms_of_edge:
            if not forms_of_line & repeated:
                break
            count += 1
        counts.append(count)
    return counts


def _repeated(pages: Sequence[Sequence[set[str]]], fewest: int) -> set[str]:
    """Forms of lines that occur on most of the pages."""
    counts: Counter[str] = Counter()
    for forms_of_page in pages:
        counts.update(set().union(*forms_of_page))
    least = max(fewest, len(pages) // 2 + 1)
    return {form for form, count in counts.items() if count >= least}


def _forms(line: str, number: float) -> Iterator[str]:
    """Forms of the line that other pages may share.

    These are the line itself, and the line with a number relative to the page's.
    """
    if len(line) > LONGEST_LINE:
        return
    line = " ".join(line.split()).casefold()
    yield line
    for digits in _DIGITS.finditer(line):
        before = line[: digits.start()]
        after = line[digits.end() :]
        yield f"{before}\0{int(digits[0]) - number:g}\0{after}"


def sentence_goes_on(before: str, after: str) -> bool:
    r"""True if a sentence seems to run from the end of one page to the next page.

    It does not if the page ends like a sentence. Else it does if the page ends with a
    comma or dash, if the next begins with a lower-case letter, or if both lines at the
    break are as long as the others (headings are not).

    Examples
    --------
    >>> sentence_goes_on("The keeper, who had", "\nlit the lamp, slept.")
    True
    >>> sentence_goes_on("The keeper slept.", "\nThe lamp was lit.")
    False
    """
    end = before.rstrip()
    begin = after.lstrip()
    if not end or not begin:
        return False
    last = end.rstrip(_CLOSING)[-1:]
    first = begin.lstrip(_OPENING)[:1]
    if last in _SENTENCE_ENDS or not first.isalnum() or _LIST_MARKER.match(begin):
        return False
    if first.islower() or last in _GOES_ON_AFTER:
        return True
    last_line = end.rsplit("\n", 1)[-1]
    first_line = begin.split("\n", 1)[0]
    return _is_full_line(last_line, end) and _is_full_line(first_line, begin)


def _is_full_line(line: str, page: str) -> bool:
    """True if a line is about as long as the lines of its page.

    False if the page has fewer than three.
    """
    lengths = [len(other) for other in map(str.strip, page.splitlines()) if other]
    return len(lengths) >= 3 and len(line.strip()) >= _FULL_LINE * median(lengths)
