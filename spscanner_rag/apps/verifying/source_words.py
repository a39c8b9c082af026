r"""The words of a text in the form in which quotes are compared.

Two texts that differ only in typography have the same words: in case, white space,
punctuation, quotation marks, dashes, ligatures, accents written apart, hyphens in words
and at the ends of lines, marks between groups of digits, and numbers of notes. Signs
that change what a number says are words of their own: %, currencies, < and >, minus.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import regex

from spscanner_rag.text.folding import folded
from spscanner_rag.text.languages import CJK_CHARACTER

# Scripts that put no white space between words; their characters are compared.
_UNSPACED: Final = rf"{CJK_CHARACTER}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_LETTER = rf"(?:(?![{_UNSPACED}])\p{{L}}\p{{M}}*)"
# Within a word: an apostrophe, an invisible character, or a hyphen, at the end of a
# line too.
_JOINT = r"(?:['’ʼ＇]|[\u00ad\u200b-\u200d\u2060\ufeff]+|[-‐‑\u00ad](?:\r?\n[ \t]*)?)"
_WORD = regex.compile(
    r"(?P<note>\[\d{1,3}\]|(?<=\p{L}{3}|[.!?,;:)\]\"'’”])[¹²³⁰⁴-⁹]+)"
    r"|(?P<number>(?:(?<![\w)\]%.,'’-])[-−–])?\d+(?:[.,'’\u00a0\u202f\u2009]\d+)*)"
    r"|(?P<sign>[%‰<>≤≥±]|\p{Sc})"
    rf"|(?P<letters>{_LETTER}+(?:{_JOINT}{_LETTER}+)*)"
    rf"|(?P<character>[{_UNSPACED}]|\p{{No}})"
)
_GROUP_MARK = regex.compile(
    r"(?<=\d)['’\u00a0\u202f\u2009](?=\d{3}(?!\d))|(?<=^-?\d{1,3}(?:,\d{3})*),(?=\d{3}(?!\d))"
)
_JOINTS = regex.compile(r"['’ʼ＇\s\u200b-\u200d\u2060\ufeff\u00ad‐‑-]+")


class Word(NamedTuple):
    """A word of a text, with the form that is compared."""

    form: str
    start: int
    end: int
    is_number: bool


def words_of_text(text: str, left_out: Iterable[tuple[int, int]] = ()) -> list[Word]:
    r"""The words of a text, but those that begin in a span that is left out.

    Parameters
    ----------
    text : str
    left_out : iterable of (int, int)
        Spans that readers do not see, such as markup, ascending.

    Examples
    --------
    >>> words = words_of_text("The “light-\nhouse” cost £4,194.[3]")
    >>> [word.form for word in words]
    ['the', 'lighthouse', 'cost', '£', '4194']
    """
    words = []
    hidden = iter(left_out)
    start_hidden, end_hidden = next(hidden, (len(text), len(text)))
    for match in _WORD.finditer(text):
        kind = match.lastgroup
        while match.start() >= end_hidden > 0 and start_hidden < len(text):
            start_hidden, end_hidden = next(hidden, (len(text), len(text)))
        if kind == "note" or start_hidden <= match.start() < end_hidden:
            continue
        is_number = kind == "number"
        form = _form(match[0], is_number)
        words.append(Word(form, match.start(), match.end(), is_number))
    return words


def _form(written: str, is_number: bool) -> str:
    if is_number:
        plain = written.replace("−", "-").replace("–", "-")
        return str(_GROUP_MARK.sub("", plain))
    if written.isascii() and written.isalpha():
        return written.lower()
    return str(_JOINTS.sub("", folded(written).casefold())) or written


def forms_of(words: Sequence[Word]) -> Iterator[str]:
    """The forms of words."""
    for word in words:
        yield word.form
