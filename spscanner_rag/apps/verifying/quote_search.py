"""Finds a quote in a document: word by word, or with the differences named."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import regex

from spscanner_rag.apps.verifying.differences import (
    GRAVE,
    Difference,
    is_negation,
    kind_of,
)
from spscanner_rag.apps.verifying.quote_parts import QuotePart, parts_of
from spscanner_rag.apps.verifying.searched_text import SearchedText, Stretch, shifted
from spscanner_rag.apps.verifying.source_words import Word, forms_of
from spscanner_rag.apps.verifying.word_alignment import Alignment, Change, align

MOST_LEFT_OUT: Final = 600
"""Words that an ellipsis may stand for."""

_MOST_PARTS = 50
_WORDS_OF_DENIAL = 12  # a longer gap may have a "not" that changes nothing
_SENTENCE_END = regex.compile(r"[.!?。！？]")
_LONGEST_SHOWN = 80
_MOST_TYPOGRAPHY = 3
_NOTE = regex.compile(r"\[\d{1,3}\]|[¹²³⁰⁴-⁹]+")  # numbers of notes


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """Where a quote, or what is most like it, stands in a document.

    Attributes
    ----------
    stretches : tuple of Stretch
        The places: for an exact quote all of them, else the likeliest.
    differences : tuple of Difference
        Empty for a quote that is as in the document.
    changed_words : int
        Words changed, added and left out without a mark.
    """

    stretches: tuple[Stretch, ...]
    differences: tuple[Difference, ...]
    changed_words: int

    @property
    def is_altered(self) -> bool:
        """Whether the quote says something else than the document."""
        return any(difference.kind in GRAVE for difference in self.differences)


def find_quote(
    quote: str, document: SearchedText, *, near: bool = True
) -> QuoteMatch | None:
    """Find a quote in a document.

    Parameters
    ----------
    quote : str
    document : SearchedText
    near : bool, default True
        Whether what is merely like the quote is found too, which takes longer.

    Returns
    -------
    QuoteMatch or None
        None if nothing in the document is like the quote, or if it has no words.

    Examples
    --------
    >>> document = SearchedText("She ran aground only once, in 1899 on the bar.")
    >>> find_quote("ran aground only once", document).stretches
    (Stretch(start=4, end=25),)
    >>> print(*find_quote("she ran aground twice, in 1899", document).differences)
    number: "twice" for "only once"
    """
    parts = _parts_of(quote)
    if not parts or not document.words:
        return None
    longest = max(range(len(parts)), key=lambda place: len(parts[place].words))
    best: QuoteMatch | None = None
    exact_stretches: list[Stretch] = []
    for anchor in _anchors(parts[longest], document, near):
        match = _match_around(quote, parts, longest, anchor, document)
        if not match.is_altered:
            exact_stretches += match.stretches
        if best is None or _grade(match) < _grade(best):
            best = match
    if best is None or best.is_altered:
        return best
    stretches = tuple(dict.fromkeys(exact_stretches))
    return QuoteMatch(stretches, best.differences, best.changed_words)


@lru_cache(maxsize=8)  # one quote is searched in many documents
def _parts_of(quote: str) -> list[QuotePart]:
    return parts_of(quote)[:_MOST_PARTS]


def _grade(match: QuoteMatch) -> tuple[bool, int, int]:
    return match.is_altered, match.changed_words, len(match.differences)


def _anchors(
    part: QuotePart, document: SearchedText, near: bool
) -> Iterator[Alignment]:
    """Where a part of a quote stands: all exact places, else near ones."""
    numbers = document.numbers_of(part.words)
    starts = document.exact(numbers)
    for start in starts:
        yield Alignment(start, start + len(numbers), 0, ())
    if near and not starts:
        yield from document.near(numbers)


def _match_around(
    quote: str,
    parts: Sequence[QuotePart],
    longest: int,
    anchor: Alignment,
    document: SearchedText,
) -> QuoteMatch:
    """Find the other parts before and after one that was found."""
    placed: dict[int, Alignment] = {longest: anchor}
    differences: list[Difference] = []
    at = anchor.end
    for place in range(longest + 1, len(parts)):
        near_part = _near_part(parts[place], document, at, at + MOST_LEFT_OUT)
        if near_part is not None:
            placed[place] = near_part
            at = near_part.end
    at = anchor.start
    for place in range(longest - 1, -1, -1):
        near_part = _near_part(parts[place], document, at - MOST_LEFT_OUT, at)
        if near_part is not None:
            placed[place] = near_part
            at = near_part.start
    changed = 0
    for place, part in enumerate(parts):
        alignment = placed.get(place)
        if alignment is None:
            differences.append(_elsewhere(quote, part, document))
            changed += len(part.words)
            continue
        before = placed.get(place - 1)
        if before is not None:
            differences += _gap(part, before, alignment, document)
        differences += _within(quote, part, alignment, document)
        changed += alignment.distance
    first = min(alignment.start for alignment in placed.values())
    stop = max(alignment.end for alignment in placed.values())
    stretches = (document.stretch(first, stop),)
    return QuoteMatch(stretches, tuple(differences), changed)


def _near_part(
    part: QuotePart, document: SearchedText, first: int, stop: int
) -> Alignment | None:
    """A part in a stretch of a document, or None if it is not there."""
    first = max(first, 0)
    window = document.numbers[first:stop]
    numbers = document.numbers_of(part.words)
    if not len(window):
        return None
    alignment = align(numbers, window)
    if alignment.distance > max(len(numbers) // 3, len(part.bracketed)):
        return None
    return shifted(alignment, first)


def _elsewhere(quote: str, part: QuotePart, document: SearchedText) -> Difference:
    """The difference of a part that does not stand where the others do."""
    quoted = _shown(quote[part.words[0].start : part.words[-1].end])
    starts = document.exact(document.numbers_of(part.words))
    if not starts:
        return Difference("added", quoted, "")
    stretch = document.stretch(starts[0], starts[0] + len(part.words))
    return Difference("order", quoted, _shown(document.text[slice(*stretch)]))


def _gap(
    part: QuotePart, before: Alignment, after: Alignment, document: SearchedText
) -> list[Difference]:
    """What a quote leaves out between two of its parts."""
    words = document.words[before.end : after.start]
    if not words:
        return []
    text = document.text[words[0].start : words[-1].end]
    if not part.after_ellipsis:
        kind = kind_of([], list(forms_of(words)))
        return [Difference(kind, "", _shown(text))] if kind else []
    is_short = len(words) <= _WORDS_OF_DENIAL
    if is_short and not _SENTENCE_END.search(text):
        denials = [word for word in words if is_negation(word.form)]
        if denials:
            return [Difference("negation", "…", _shown(text))]
    return [Difference("editorial", "…", _shown(text))]


def _within(
    quote: str, part: QuotePart, alignment: Alignment, document: SearchedText
) -> list[Difference]:
    """The differences of a part from what stands in its place."""
    differences: list[Difference] = []
    for change in _single_changes(alignment.changes):
        quoted = part.words[change.quote_start : change.quote_end]
        source = document.words[change.text_start : change.text_end]
        kind = kind_of(list(forms_of(quoted)), list(forms_of(source)))
        if kind is None:
            continue
        places = range(change.quote_start, change.quote_end)
        is_marked = len(places) > 0 and part.bracketed.issuperset(places)
        if is_marked and kind != "negation":
            kind = "editorial"
        quoted_text = _text_of(quote, quoted)
        source_text = _text_of(document.text, source)
        differences.append(Difference(kind, quoted_text, source_text))
    if not alignment.changes:
        first = alignment.start
        source = document.words[first : alignment.end]
        differences += _typography(quote, part.words, document.text, source)
    return differences


def _single_changes(changes: Sequence[Change]) -> Iterator[Change]:
    """Changes, with as many words on both sides taken one by one."""
    for change in changes:
        n_words = change.quote_end - change.quote_start
        if n_words != change.text_end - change.text_start:
            yield change
            continue
        for at in range(n_words):
            quoted = change.quote_start + at
            source = change.text_start + at
            yield Change(quoted, quoted + 1, source, source + 1)


def _typography(
    quote: str, words: Sequence[Word], text: str, source: Sequence[Word]
) -> Iterator[Difference]:
    """The first differences of writing between words that are the same."""
    n_told = 0
    ends = (words[0].start, source[0].start)
    for quoted, original in zip(words, source, strict=True):
        pieces = (
            (quote[ends[0] : quoted.start], text[ends[1] : original.start]),
            (quote[quoted.start : quoted.end], text[original.start : original.end]),
        )
        ends = (quoted.end, original.end)
        for ours, theirs in pieces:
            ours = _NOTE.sub("", ours)
            theirs = _NOTE.sub("", theirs)
            is_same = ours.split() == theirs.split()
            if not is_same and n_told < _MOST_TYPOGRAPHY:
                n_told += 1
                yield Difference("typography", _shown(ours), _shown(theirs))


def _text_of(text: str, words: Sequence[Word]) -> str:
    if not words:
        return ""
    return _shown(text[words[0].start : words[-1].end])


def _shown(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= _LONGEST_SHOWN:
        return plain
    return plain[: _LONGEST_SHOWN - 1] + "…"
