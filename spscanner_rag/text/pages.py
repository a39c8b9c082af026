"""Join the pages of a document: running headers and footers left out, sentences continued over page breaks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

FEWEST_PAGES = 3  # a line on fewer pages than this is never a running one
# number of lines at each edge of a page that may be running ones; blank lines do not
# count
EDGE_LINES = 3
LONGEST_LINE = 150  # a longer line, in characters, is text
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_DIGITS = re.compile(r"\d{1,9}")

_CLOSING = "\"'”’»›」』)]}*_ "  # noqa: RUF001
_OPENING = "\"'“‘«‹「『([{*_ "  # noqa: RUF001
_SENTENCE_ENDS = ".!?…。！？"  # noqa: RUF001
_GOES_ON_AFTER = ",;-–—‐"  # noqa: RUF001
_LIST_MARKER = re.compile(r"\d{1,3}(\.\d{1,3})*[.)]?\s|[A-Za-z][.)]\s")
_FULL_LINE = (
    0.7  # a line of at least this share of the usual line length is not a heading
)


def page_bodies(
    pages: Sequence[str], numbers: Sequence[float]
) -> list[tuple[int, int]]:
    """The span of each page without its running headers and footers.

    A page without other text keeps all of it.

    A line is a running one if more than half of the pages, or of every second page,
    have it among the ``EDGE_LINES`` lines at the same edge, and at least
    ``FEWEST_PAGES`` pages do. Lines count as equal if they differ only in white space,
    in case, or in one number that grows with the page number in ``numbers``.
    """
    whole = [(0, len(page)) for page in pages]
    if len(pages) < FEWEST_PAGES:
        return whole
    tops, bottoms = [], []
    for page in pages:  # one at a time: all lines of a document take much memory
        own = [
            (*line.span(), text)
            for line in _LINE.finditer(page)
            if (text := line[0].strip())
        ]
        tops.append(own[:EDGE_LINES])
        bottoms.append(own[: -EDGE_LINES - 1 : -1])
    starts = [lines[-1][1] if lines else 0 for lines in _running(tops, numbers)]
    ends = [
        lines[-1][0] if lines else len(page)
        for page, lines in zip(pages, _running(bottoms, numbers), strict=True)
    ]
    return [
        (start, end) if pages[number][start:end].strip() else whole[number]
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


_Line = tuple[int, int, str]  # start, end with the line break, text


def _running(
    edges: Sequence[Sequence[_Line]], numbers: Sequence[float]
) -> list[list[_Line]]:
    """The running lines of each edge, from the edge inwards, up to the first other line."""
    names = [
        [set(_names(text, number)) for _, _, text in edge]
        for edge, number in zip(edges, numbers, strict=True)
    ]
    repeated = _repeated(names) | _repeated(names[::2]) | _repeated(names[1::2])
    running = []
    for edge, own in zip(edges, names, strict=True):
        kept = next(
            (n for n, of_line in enumerate(own) if not of_line & repeated), len(own)
        )
        running.append(list(edge[:kept]))
    return running


def _repeated(pages: Sequence[Sequence[set[str]]]) -> set[str]:
    """Names that occur on most of the pages."""
    counts = Counter(name for lines in pages for name in set().union(*lines))
    return {
        name
        for name, count in counts.items()
        if count >= FEWEST_PAGES and 2 * count > len(pages)
    }


def _names(line: str, number: float) -> Iterator[str]:
    """Forms of the line that other pages may share: the line itself, or with a number relative to the page's."""
    if len(line) > LONGEST_LINE:
        return
    line = " ".join(line.split()).casefold()
    yield line
    for digits in _DIGITS.finditer(line):
        yield (
            f"{line[: digits.start()]}\0{int(digits[0]) - number:g}\0{line[digits.end() :]}"
        )


def sentence_goes_on(before: str, after: str) -> bool:
    """True if a sentence seems to run from the end of one page to the beginning of the next.

    It does not if the page ends like a sentence. Else it does if the page ends with a
    comma or dash, if the next begins with a lower-case letter, or if both lines at the
    break are as long as the others (headings are not).
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
    """True if a line is about as long as the lines of its page.

    False if the page has fewer than three.
    """
    lengths = [len(other.strip()) for other in page.splitlines() if other.strip()]
    return len(lengths) >= 3 and len(line.strip()) >= _FULL_LINE * median(lengths)
