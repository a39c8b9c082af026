"""A quote, divided at its ellipses, with the words that it has in square brackets."""

from typing import Final, NamedTuple

import regex

from spscanner_rag.apps.verifying.source_words import Word, words_of_text

LONGEST_PART: Final = 200
"""Words that are searched at a time; a longer part of a quote is divided."""

_ELLIPSIS = regex.compile(r"[\[(]\s*(?:\.\s?\.\s?\.|…)\s*[\])]|(?:\.\s?){2}\.|…|⋯")
_BRACKETS = regex.compile(r"\[[^\[\]\n]{1,80}\]")
_BRACKETED_LETTER = regex.compile(r"(?<!\w)\[(\p{L})\](?=\p{L})")


class QuotePart(NamedTuple):
    """A part of a quote that should stand in its source in one piece."""

    words: list[Word]  # with their places in the quote
    bracketed: frozenset[int]  # indices of words in square brackets
    after_ellipsis: bool


def parts_of(quote: str) -> list[QuotePart]:
    """The parts of a quote.

    None if it has no words.

    Examples
    --------
    >>> for part in parts_of("[She] ran aground ... on the bar"):
    ...     print([word.form for word in part.words], sorted(part.bracketed))
    ['she', 'ran', 'aground'] [0]
    ['on', 'the', 'bar'] []
    """
    # [h]e is he: a capital changed, which is typography; two blanks keep the places
    text = _BRACKETED_LETTER.sub(r"\u200b\1\u200b", quote)
    ellipses = [match.span() for match in _ELLIPSIS.finditer(text)]
    brackets = [match.span() for match in _BRACKETS.finditer(text)]
    parts: list[QuotePart] = []
    words: list[Word] = []
    bracketed: set[int] = set()
    follows_ellipsis = False
    next_ellipsis = 0
    for word in words_of_text(text):
        while next_ellipsis < len(ellipses) and (
            ellipses[next_ellipsis][0] < word.start
        ):
            next_ellipsis += 1
            if words:
                parts.append(QuotePart(words, frozenset(bracketed), follows_ellipsis))
                words, bracketed = [], set()
                follows_ellipsis = True
        if len(words) == LONGEST_PART:
            parts.append(QuotePart(words, frozenset(bracketed), follows_ellipsis))
            words, bracketed = [], set()
            follows_ellipsis = False
        if any(start < word.start < end for start, end in brackets):
            bracketed.add(len(words))
        words.append(word)
    if words:
        parts.append(QuotePart(words, frozenset(bracketed), follows_ellipsis))
    return parts
