"""Which sentences are the newest, and a ranking that prefers them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.written_forms import dates_of

NEARLY = 1.5
"""By how much the logit of a sentence may be below that of the best one of a group of
nearly equal relevance."""

_LINE_BEGINNING = re.compile(r"^[^\r\n]{4,80}", re.MULTILINE)
_DAY_OF_WEEK = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b)"
_BEFORE = re.compile(
    r"#.*"  # a heading of Markdown
    rf"|(?:(?:Date|Sent):[ \t]*|[\W_]*)(?:{_DAY_OF_WEEK}|\d{{1,2}}:\d{{2}})?[., ]*"
    r"|[^\W\d_][^:.?!]{0,40}[\[(]",  # who speaks
    re.IGNORECASE,
)
_CLOCK = r"(?:[ T,]+\d{1,2}:\d{2})"
_AFTER = re.compile(rf"{_CLOCK}|[\])]|[ \t]*(?:$|[-–—|:])|[^:.?!]{{1,40}}:\s")  # noqa: RUF001


class _DatedLine(NamedTuple):
    """A line that begins with a date, which is "" in a reading that is impossible."""

    start: int
    day_first: str
    month_first: str


def newest_first(
    ranked: NDArray[np.int64],
    logits: NDArray[np.floating[Any]],
    recency: NDArray[np.integer[Any]],
) -> NDArray[np.int64]:
    """Sort sentences of nearly equal relevance from the newest to the oldest: (n,).

    The best sentence and all whose logits are at most `NEARLY` below its own are a
    group, the best of the others begins the next group, and so on. Within a group, the
    newest comes first.

    Parameters
    ----------
    ranked : array of int, shape (n,)
        Indices of sentences, the best first.
    logits : array of float
        Of the sentences.
    recency : array of int
        Of the sentences; higher means newer.

    Examples
    --------
    >>> logits = np.array([2.0, 1.8, -3.0])
    >>> newest_first(np.array([0, 1, 2]), logits, np.array([0, 1, 2])).tolist()
    [1, 0, 2]
    """
    falls = -logits[ranked].astype(np.float64)  # ascending
    groups = np.zeros(len(ranked), np.int64)
    first = 0
    while first < len(ranked):
        groups[first:] += 1
        first = int(np.searchsorted(falls, falls[first] + NEARLY, "right"))
    return ranked[np.lexsort((-recency[ranked], groups))]


def recency_of(
    text: str, starts: NDArray[np.int64], owners: NDArray[np.integer[Any]] | None = None
) -> NDArray[np.int64]:
    r"""How new each sentence is, 0 for the oldest: (n,).

    A sentence has the date with which its line or the nearest line above it begins, as
    in "[2026-03-04 18:02] Ann: ...", "Ann (4 March 2026):" or "# Monday, 4 March 2026".
    Sentences without a date are the oldest. Of one date, the later one in the text is
    the newer one.

    Parameters
    ----------
    text : str
        The text of the sentences.
    starts : array of int, shape (n,)
        Where they begin, ascending.
    owners : array of int, shape (n,), optional
        The document of each; a date does not reach into the next document.

    Examples
    --------
    >>> text = "2026-03-04: It rained.\n2026-03-02: It snowed."
    >>> recency_of(text, np.array([0, 23])).tolist()
    [1, 0]
    """
    places = np.arange(len(starts))
    dates = _dates_of_sentences(text, starts, owners)
    order = np.lexsort((places, dates))
    recency = np.empty(len(starts), np.int64)
    recency[order] = places
    return recency


def _dates_of_sentences(
    text: str, starts: NDArray[np.int64], owners: NDArray[np.integer[Any]] | None
) -> NDArray[np.str_]:
    """The date of each sentence as digits, "" for none: (n,)."""
    lines = list(_dated_lines(text))
    if all(line.day_first for line in lines):
        dates = [line.day_first for line in lines]
    else:  # somewhere the second number is no month
        dates = [line.month_first or line.day_first for line in lines]
    n_above = np.searchsorted([line.start for line in lines], starts, "right")
    if owners is not None:
        first = np.searchsorted(owners, owners)  # of each sentence's document
        n_before = np.where(first > 0, n_above[first - 1], 0)
        n_above = np.where(n_above > n_before, n_above, 0)
    return np.array(["", *dates])[n_above]


def _dated_lines(text: str) -> Iterator[_DatedLine]:
    """The lines of a text that begin with a date."""
    for line in _LINE_BEGINNING.finditer(text):
        for date in dates_of(line[0]):
            before = line[0][: date.start]
            after = line[0][date.end :]
            if _BEFORE.fullmatch(before) and _is_head(before, after):
                yield _DatedLine(line.start(), date.day_first, date.month_first)
                break


def _is_head(before: str, after: str) -> bool:
    return before.startswith("#") or _AFTER.match(after) is not None
