"""Words that typesetting divided at the end of a line, joined again."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
# Some PDFs have the second in place of the first.
_SOFT_HYPHENS = "\u00ad\u00ac"
HYPHENS = f"-\u2010{_SOFT_HYPHENS}"
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LINE_BREAK = re.compile(rf"[{HYPHENS}][ \t\r]*(?:\n[ \t]*\f?|\f)[ \t]*")
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_REMAINDER_OF_WORD = re.compile(r"(\S*)[ \t]*")
# Characters: a longer part is not taken for a part of a divided word.
_LONGEST_PART = 40


class _DividedWord(NamedTuple):
    first: str  # the part before the hyphen
    hyphen: int  # its offset
    second: str  # the part after the line break
    second_start: int


def has_divided_words(text: str) -> bool:
    """True if a line of the text may end within a word."""
    has_breaks = "\n" in text or "\f" in text
    return has_breaks and _LINE_BREAK.search(text) is not None


def join_divided_words(pages: Sequence[str]) -> list[str]:
    """The texts of a typeset document's pages, with divided words joined.

    They are joined on the line where they begin. The hyphen is removed if the document
    has the joined word at least as often as "first-second", or neither of the two, nor
    both parts as separate words. Before a capital letter, as in "Request-" and "Vote",
    only a word is joined that the document also has in one; nothing is before a digit.
    """
    spelled = [page.translate(LIGATURES) for page in pages]
    divided = [list(_divided_words(page)) for page in spelled]
    if not any(divided):
        return spelled
    counts = _word_counts(spelled, divided)
    joined = []
    for page, words in zip(spelled, divided, strict=True):
        joined.append(_joined(page, words, counts))
    return joined


def _divided_words(page: str) -> Iterator[_DividedWord]:
    for line_break in _LINE_BREAK.finditer(page):
        hyphen, second_start = line_break.span()
        reach = max(0, hyphen - _LONGEST_PART)
        first = _LETTERS_BEFORE.search(page, reach, hyphen)
        second = _LETTERS.match(page, second_start, second_start + _LONGEST_PART)
        if first and second:
            yield _DividedWord(first[0], hyphen, second[0], second_start)


def _word_counts(
    pages: Sequence[str], divided: Sequence[Sequence[_DividedWord]]
) -> Counter[str]:
    """How often the document has each word that is not divided, in lower case.

    A compound is one word.
    """
    spellings: Counter[str] = Counter()
    for page, words in zip(pages, divided, strict=True):
        start = 0
        for divided_word in words:
            end = divided_word.hyphen - len(divided_word.first)
            spellings.update(_WORD.findall(page, start, end))
            start = divided_word.second_start + len(divided_word.second)
        spellings.update(_WORD.findall(page, start))
    counts: Counter[str] = Counter()
    for word, count in spellings.items():
        counts[word.lower().replace("\u2010", "-")] += count
    return counts


def _joined(page: str, words: Sequence[_DividedWord], counts: Counter[str]) -> str:
    parts = []
    position = 0
    for word in words:
        if word.hyphen < position:  # a word on three lines
            continue
        if not _is_one_word(word, counts):
            continue
        hyphen = page[word.hyphen]
        if hyphen in _SOFT_HYPHENS or _hyphen_is_of_the_line(word, counts):
            hyphen = ""
        remainder = _REMAINDER_OF_WORD.match(page, word.second_start)
        assert remainder is not None
        # If the word is all of its line, the line break after it is already there.
        next_character = page[remainder.end() : remainder.end() + 1]
        line_break = "" if next_character in ("", "\n") else "\n"
        parts += [page[position : word.hyphen], hyphen, remainder[1], line_break]
        position = remainder.end()
    return "".join([*parts, page[position:]])


def _is_one_word(word: _DividedWord, counts: Counter[str]) -> bool:
    """True if both parts may be one word, as two names with a hyphen are not."""
    if not word.second[0].isupper():
        return True
    first = word.first.lower()
    second = word.second.lower()
    return counts[first + second] > counts[f"{first}-{second}"]


def _hyphen_is_of_the_line(word: _DividedWord, counts: Counter[str]) -> bool:
    """True if a hyphen is there only because the line ended."""
    first = word.first.lower()
    second = word.second.lower()
    n_joined = counts[first + second]
    n_compound = counts[f"{first}-{second}"]
    if n_joined or n_compound:
        return n_joined >= n_compound
    return not (counts[first] and counts[second])
