"""Stems of German words, in which the forms of a verb are the same word.

Snowball's stem of "heizen" is "heiz", of "heizt" "heizt", and of "geheizt" "geheizt",
so that a question in one form misses a text in another.
"""

import re
from collections.abc import Sequence
from typing import Final

import Stemmer

from spscanner_rag.text.languages import STOP_WORDS_OF

GERMAN: Final = "german"

_PREFIXES = (
    "ab|an|auf|aus|bei|dar|durch|ein|entgegen|fest|fort|heim|her|heraus|herein|hervor"
    "|hin|hinaus|hinein|los|mit|nach|nieder|statt|teil|um|unter|vor|voraus|weg|weiter"
    "|wieder|zu|zurück|zusammen"
)
_NOUNS = (
    "geburt|gebiet|gedicht|gehalt|gericht|gerücht|gesamt|geschäft|geschlecht|gesicht"
    r"|gespenst|gestalt|gewalt|gewicht|\w+schaft"
)
"""Nouns that look like participles."""

_PARTICIPLE = re.compile(
    rf"(?P<prefix>{_PREFIXES}|)(?!{_NOUNS})ge(?P<verb>\w{{3,}}te?[nmrs]?)"
)
_SHORTEST: Final = 4
"""Letters of a stem that loses its t: "Amt" is no form of a verb."""


def german_stems(words: Sequence[str]) -> list[str]:
    """Return the stems of lowercase words.

    Examples
    --------
    >>> german_stems(["heizt", "geheizt", "heizen", "eingeheizt", "einheizen"])
    ['heiz', 'heiz', 'heiz', 'einheiz', 'einheiz']
    """
    # A new stemmer, since one is not thread-safe; without its cache, which costs more
    # than stemming.
    stemmer = Stemmer.Stemmer(GERMAN, 0)
    present = [_without_ge(word) for word in words]
    return [_without_t(stem) for stem in stemmer.stemWords(present)]


def _without_ge(word: str) -> str:
    """A participle as another form of its verb, and any other word as it is."""
    participle = _PARTICIPLE.fullmatch(word)
    if participle is None:
        return word
    return participle["prefix"] + participle["verb"]


def _without_t(stem: str) -> str:
    """The stem of a verb without the ending of "er heizt"."""
    shorter = stem.removesuffix("t")
    if len(stem) < _SHORTEST or shorter in STOP_WORDS_OF[GERMAN]:
        return stem
    return shorter
