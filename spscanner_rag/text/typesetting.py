"""Undo what typesetting did to words: ligatures are spelled out, words divided at the end of a line are joined."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_SOFT_HYPHENS = "\u00ad\u00ac"  # the second is what some PDFs have for the first
HYPHENS = f"-\u2010{_SOFT_HYPHENS}"
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
BREAK = re.compile(rf"[{HYPHENS}][ \t\r]*\n[ \t]*")
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_REST = re.compile(r"(\S*)[ \t]*")
_LONGEST_PART = 40  # a longer part of a divided word, in characters, is no part of a word


def as_written(pages: Sequence[str]) -> list[str]:
    """The texts of the pages of a typeset document with divided words joined on the line where they begin.

    The hyphen goes if the joined word is in the document, or if neither "first-second" nor both parts as words
    of their own are. Before a capital letter or a digit nothing is joined.
    """
    spelled = [page.translate(LIGATURES) for page in pages]
    divided = [list(_divided(page)) for page in spelled]
    if not any(divided):
        return spelled
    words = _words(spelled, divided)
    return [_joined(page, found, words) for page, found in zip(spelled, divided, strict=True)]


class _Divided(NamedTuple):
    first: str  # the part before the hyphen
    hyphen: int  # its offset
    second: str
    start: int  # offset of the part after the line break


def _divided(page: str) -> Iterator[_Divided]:
    for match in BREAK.finditer(page):
        before = _LETTERS_BEFORE.search(page, max(0, match.start() - _LONGEST_PART), match.start())
        after = _LETTERS.match(page, match.end(), match.end() + _LONGEST_PART)
        if before and after and after.group()[0].islower():
            yield _Divided(before.group(), match.start(), after.group(), match.end())


def _words(pages: Sequence[str], divided: Sequence[Sequence[_Divided]]) -> Counter[str]:
    """The words of the document that are not divided, in lower case; a compound is one word."""
    words: Counter[str] = Counter()
    for page, found in zip(pages, divided, strict=True):
        starts = [0, *(each.start + len(each.second) for each in found)]
        ends = [*(each.hyphen - len(each.first) for each in found), len(page)]
        for start, end in zip(starts, ends, strict=True):
            words.update(word.lower().replace("\u2010", "-") for word in _WORD.findall(page, start, end))
    return words


def _joined(page: str, divided: Sequence[_Divided], words: Counter[str]) -> str:
    parts, cursor = [], 0
    for each in divided:
        if each.hyphen < cursor:  # a word in three lines
            continue
        hyphen = page[each.hyphen]
        if hyphen in _SOFT_HYPHENS or _set_by_the_line(each.first.lower(), each.second.lower(), words):
            hyphen = ""
        rest = _REST.match(page, each.start)
        assert rest is not None
        # Where the rest is all of its line, the line break after it is there already.
        after = "" if page[rest.end() : rest.end() + 1] in ("", "\n") else "\n"
        parts += [page[cursor : each.hyphen], hyphen, rest.group(1), after]
        cursor = rest.end()
    return "".join([*parts, page[cursor:]])


def _set_by_the_line(first: str, second: str, words: Counter[str]) -> bool:
    """True if a hyphen is there only because the line ended."""
    joined, compound = words[first + second], words[f"{first}-{second}"]
    if joined or compound:
        return joined >= compound
    return not (words[first] and words[second])
