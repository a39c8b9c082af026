"""The language of a text, as far as its words and their stems depend on it, and its stop words.

Stop words are two fifths of running text, so counting those of each language identifies
the language of a paragraph, without a model. A text that is not clearly in another
language counts as English.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

ENGLISH: Final = "english"


_LISTS = (
    files("spscanner_rag.text")
    .joinpath("stop_words.txt")
    .read_text("utf-8")
    .splitlines()
)
STOP_WORDS_OF: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, _, words in (line.partition(": ") for line in _LISTS)
}
"""The stop words of each language, English first."""

STOP_WORDS: Final = STOP_WORDS_OF[ENGLISH]

CJK: Final = "cjk"
"""Chinese and Japanese: no white space between words, so two neighbouring characters
count as a word."""

LANGUAGES: Final = (*STOP_WORDS_OF, CJK)

CJK_CHARACTER: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af"
)
"""Han, hiragana and katakana, as the inside of a character class."""

_WORD = re.compile(r"\w+")
_CJK = re.compile(f"[{CJK_CHARACTER}]")

# Single Latin letters are left out: "d" and "l" are French stop words, but also names
# in formulas.
_TELLING: Mapping[str, frozenset[str]] = {
    language: frozenset(word for word in words if len(word) > 1 or word >= "\u0400")
    for language, words in STOP_WORDS_OF.items()
}

_ENGLISH_SHARE = 0.2  # a text with this share of English stop words is English
_SHARE = 0.25  # the share of another language's stop words must be larger than this
_DISTINCT = (
    6  # minimum number of different ones: a list of Spanish place names has a few
)
_TIMES_ENGLISH = 2  # they must be more than this many times as frequent as English ones


def language_of(vocabulary: Mapping[str, int], numbers: NDArray[np.int32]) -> str:
    """The language, one of `LANGUAGES`, of a text with the words ``numbers``, (words,).

    English if it has none.
    """
    times = np.bincount(numbers, minlength=len(vocabulary))  # (vocabulary,)
    english = sum(_times(ENGLISH, vocabulary, times))
    if english >= len(numbers) * _ENGLISH_SHARE:
        return ENGLISH
    if max(vocabulary) >= "\u3005":
        characters = sum(
            len(word) * int(times[number]) for word, number in vocabulary.items()
        )
        cjk = sum(
            len(_CJK.findall(word)) * int(times[number])
            for word, number in vocabulary.items()
        )
        if 2 * cjk >= characters:
            return CJK
    found, most = ENGLISH, max(len(numbers) * _SHARE, english * _TIMES_ENGLISH)
    for language in _TELLING:
        own = _times(language, vocabulary, times)
        if language != ENGLISH and len(own) >= _DISTINCT and sum(own) > most:
            found, most = language, sum(own)
    return found


_CODES = {
    "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt", "dutch": "nl",
    "swedish": "sv", "russian": "ru",
}  # fmt: skip

_SHORT, _DISTINCT_SHORT, _SHARE_SHORT = 60, 2, 0.12
"""A text of fewer words is short; this many different stop words, and this share,
decide how it is cut."""

_ENGLISH_LETTERS = frozenset("ai")
_CITATION = frozenset(
    ["abs", "satz", "vgl", "nr", "ziff", "buchst", "bzw", "usw", "bgb", "mio", "mrd"]
)  # German

_SAMPLE = 4096  # characters at the beginning, in the middle and at the end of a text


def language_code(text: str) -> str:
    """The code of a text's language, from a sample of its words.

    "en" if `language_of` recognizes no other.
    """
    places = 0, max(_SAMPLE, len(text) // 2), max(2 * _SAMPLE, len(text) - _SAMPLE)
    words = [
        word
        for start in places
        for word in _WORD.findall(text[start : start + _SAMPLE].lower())
    ]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    if not words:
        return "en"
    numbers = np.fromiter(map(vocabulary.__getitem__, words), np.int32, len(words))
    language = language_of(vocabulary, numbers)
    if language == ENGLISH and len(words) < _SHORT:
        language = _leaning(vocabulary, np.bincount(numbers))
    return _CODES.get(language, "en")


def stop_words(code: str) -> frozenset[str]:
    """The stop words of the language with a code; none for an unknown code."""
    return next(
        (STOP_WORDS_OF[language] for language, own in _CODES.items() if own == code),
        frozenset(),
    )


def _leaning(vocabulary: Mapping[str, int], times: NDArray[np.int64]) -> str:
    """The language of a short text: two stop words decide, if they are frequent and outnumber English ones."""
    found, most = (
        ENGLISH,
        max(sum(times) * _SHARE_SHORT, sum(_times(ENGLISH, vocabulary, times))),
    )
    for language in _CODES:
        known = STOP_WORDS_OF[language] | (
            _CITATION if language == "german" else frozenset()
        )
        words = [
            word
            for word in known
            if word in vocabulary and word not in _ENGLISH_LETTERS
        ]
        letters = [
            word for word in words if len(word) == 1 and word.isascii()
        ]  # these count half
        own = (
            sum(int(times[vocabulary[word]]) for word in words)
            - sum(times[vocabulary[word]] for word in letters) / 2
        )
        if len(words) - len(letters) >= _DISTINCT_SHORT and own > most:
            found, most = language, own
    return found


def _times(
    language: str, vocabulary: Mapping[str, int], times: NDArray[np.int64]
) -> list[int]:
    """Occurrences of each of the language's stop words that occurs at all."""
    return [
        int(times[vocabulary[word]])
        for word in _TELLING[language]
        if word in vocabulary
    ]
