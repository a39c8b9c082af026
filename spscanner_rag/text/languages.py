"""The language of a text, by its stop words.

The words of a text and their stems depend on its language. Stop words are two fifths of
running text, so counting those of each language identifies the language of a paragraph,
without a model. A text that is not clearly in another language counts as English.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.scripts import FIRST_OTHER, LATIN, main_script
from spscanner_rag.text.scripts import UNSPACED as UNSPACED_SCRIPTS

ENGLISH: Final = "english"


def _stop_words_of_languages() -> Mapping[str, frozenset[str]]:
    folder = files("spscanner_rag.text")
    lines = folder.joinpath("stop_words.txt").read_text("utf-8").splitlines()
    stop_words = {}
    for line in lines:
        language, _, words = line.partition(": ")
        stop_words[language] = frozenset(words.split())
    return stop_words


STOP_WORDS_OF: Mapping[str, frozenset[str]] = _stop_words_of_languages()
"""The stop words of each language, English first."""

STOP_WORDS: Final = STOP_WORDS_OF[ENGLISH]

CJK: Final = "cjk"
"""Chinese and Japanese: no white space between words, so two neighbouring characters
count as a word."""

UNSPACED: Final = "unspaced"
"""Thai, Lao, Khmer, Burmese and Tibetan: no white space between words, so three
neighbouring characters count as a word."""

OTHER: Final = "other"
"""Languages in other scripts than Latin of which no stop words are known."""

LANGUAGES: Final = (*STOP_WORDS_OF, CJK, UNSPACED, OTHER)

_OF_SCRIPT: Mapping[str, tuple[str, ...]] = {
    "arabic": ("arabic", "persian"),
    "cyrillic": ("russian", "ukrainian"),
    "devanagari": ("hindi",),
    "greek": ("greek",),
    "hangul": ("korean",),
    "hebrew": ("hebrew",),
}
"""The languages of scripts, the first being the one without its stop words."""

CJK_CHARACTER: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
"""Han, hiragana and katakana, as the inside of a character class."""

_WORD = re.compile(r"\w+")
_CJK = re.compile(f"[{CJK_CHARACTER}]")
_FIRST_CJK = "\u3005"


def _telling(words: Iterable[str]) -> frozenset[str]:
    """The stop words that tell a language.

    Single Latin letters are left out: "d" and "l" are French stop words, but also names
    in formulas.
    """
    return frozenset(word for word in words if len(word) > 1 or word >= "\u0400")


_TELLING: Mapping[str, frozenset[str]] = {
    language: _telling(words) for language, words in STOP_WORDS_OF.items()
}

# A text with this share of English stop words is English.
_ENGLISH_SHARE = 0.2
# The share of another language's stop words must be larger than this, or than the
# second where hardly a word is English: Turkish or Finnish has fewer stop words.
_SHARE = 0.25
_SHARE_WITHOUT_ENGLISH = 0.1
_HARDLY_ENGLISH = 0.04
# Minimum number of different ones: a list of Spanish place names has a few.
_DISTINCT = 6
# They must be more than this many times as frequent as English ones.
_TIMES_ENGLISH = 2


def language_of(vocabulary: Mapping[str, int], numbers: NDArray[np.int32]) -> str:
    """The language, one of `LANGUAGES`, of a text.

    The text has the words ``numbers``, (words,), of a vocabulary. It counts as English
    if it has none.

    Examples
    --------
    >>> words = "wer hat den vertrag und die karte von der insel auf dem schiff".split()
    >>> vocabulary = {word: number for number, word in enumerate(words)}
    >>> language_of(vocabulary, np.arange(len(words), dtype=np.int32))
    'german'
    """
    counts = np.bincount(numbers, minlength=len(vocabulary))  # (vocabulary,)
    n_english = sum(_stop_word_counts(ENGLISH, vocabulary, counts))
    if n_english >= len(numbers) * _ENGLISH_SHARE:
        return ENGLISH
    if max(vocabulary) >= _FIRST_CJK and _is_mostly_cjk(vocabulary, counts):
        return CJK
    script = LATIN
    if max(vocabulary) >= FIRST_OTHER:
        script = main_script(_counted(vocabulary, counts))
    if script != LATIN:
        return _language_in_script(script, vocabulary, counts)
    best_language = ENGLISH
    share = _SHARE
    if n_english < len(numbers) * _HARDLY_ENGLISH:
        share = _SHARE_WITHOUT_ENGLISH
    best_count = max(len(numbers) * share, n_english * _TIMES_ENGLISH)
    for language in _TELLING:
        if language == ENGLISH:
            continue
        stop_word_counts = _stop_word_counts(language, vocabulary, counts)
        if len(stop_word_counts) >= _DISTINCT and sum(stop_word_counts) > best_count:
            best_language = language
            best_count = sum(stop_word_counts)
    return best_language


def _counted(
    vocabulary: Mapping[str, int], counts: NDArray[np.int64]
) -> Iterator[tuple[str, int]]:
    """The words of a vocabulary and how often each occurs."""
    for word, number in vocabulary.items():
        yield word, int(counts[number])


def _language_in_script(
    script: str, vocabulary: Mapping[str, int], counts: NDArray[np.int64]
) -> str:
    """The language of a text in another script than Latin, Han and kana."""
    if script in UNSPACED_SCRIPTS:
        return UNSPACED
    languages = _OF_SCRIPT.get(script, (OTHER,))
    if len(languages) == 1:
        return languages[0]
    stop_word_counts = []
    for language in languages:
        stop_word_counts.append(sum(_stop_word_counts(language, vocabulary, counts)))
    return languages[int(np.argmax(stop_word_counts))]


def _is_mostly_cjk(vocabulary: Mapping[str, int], counts: NDArray[np.int64]) -> bool:
    """True if at least half of the characters are Chinese or Japanese."""
    n_characters = 0
    n_cjk = 0
    for word, number in vocabulary.items():
        count = int(counts[number])
        n_characters += len(word) * count
        n_cjk += len(_CJK.findall(word)) * count
    return 2 * n_cjk >= n_characters


def _stop_word_counts(
    language: str, vocabulary: Mapping[str, int], counts: NDArray[np.int64]
) -> list[int]:
    """How often each of the language's stop words occurs that occurs at all."""
    words = [word for word in _TELLING[language] if word in vocabulary]
    return [int(counts[vocabulary[word]]) for word in words]


_CODES = {
    "german": "de", "french": "fr", "spanish": "es", "italian": "it",
    "portuguese": "pt", "dutch": "nl", "swedish": "sv", "russian": "ru",
    "turkish": "tr", "vietnamese": "vi", "polish": "pl", "czech": "cs",
    "norwegian": "no", "finnish": "fi", "hungarian": "hu", "romanian": "ro",
    "indonesian": "id", "arabic": "ar", "persian": "fa", "hindi": "hi",
    "greek": "el", "hebrew": "he", "ukrainian": "uk", "korean": "ko",
}  # fmt: skip
# Danish and Catalan are left out: sentencex 1.0.32 does not return from some texts of
# these, so they are cut by the rules of English.

# A text of fewer words is short; this many different stop words, and this share, decide
# how it is cut.
_SHORT = 60
_DISTINCT_SHORT = 2
_SHARE_SHORT = 0.12

_ENGLISH_LETTERS = frozenset("ai")
_GERMAN_CITATION = frozenset("abs satz vgl nr ziff buchst bzw usw bgb mio mrd".split())

_SAMPLE = 4096  # characters at the beginning, in the middle and at the end of a text


def language_code(text: str) -> str:
    """The code of a text's language, from a sample of its words.

    It is "en" if `language_of` recognizes no other.

    Examples
    --------
    >>> language_code("Der Vertrag wurde von der Kommission und dem Rat geschlossen.")
    'de'
    """
    words = _sample_of_words(text)
    if not words:
        return "en"
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    numbers = np.fromiter(map(vocabulary.__getitem__, words), np.int32, len(words))
    language = language_of(vocabulary, numbers)
    if language == ENGLISH and len(words) < _SHORT:
        language = _language_of_short_text(vocabulary, np.bincount(numbers))
    return _CODES.get(language, "en")


def _sample_of_words(text: str) -> list[str]:
    """Lowercase words at the beginning, in the middle and at the end of a text."""
    middle = max(_SAMPLE, len(text) // 2)
    end = max(2 * _SAMPLE, len(text) - _SAMPLE)
    words: list[str] = []
    for start in (0, middle, end):
        words += _WORD.findall(text[start : start + _SAMPLE].lower())
    return words


def stop_words(code: str) -> frozenset[str]:
    """The stop words of the language with a code, and none for an unknown code."""
    for language, code_of_language in _CODES.items():
        if code_of_language == code:
            return STOP_WORDS_OF[language]
    return frozenset()


def _language_of_short_text(
    vocabulary: Mapping[str, int], counts: NDArray[np.int64]
) -> str:
    """The language of a short text.

    Two stop words decide, if they are frequent and outnumber English ones.
    """
    n_english = sum(_stop_word_counts(ENGLISH, vocabulary, counts))
    best_language = ENGLISH
    best_count: float = max(int(counts.sum()) * _SHARE_SHORT, n_english)
    for language in _CODES:
        candidates = STOP_WORDS_OF[language] - _ENGLISH_LETTERS
        if language == "german":
            candidates |= _GERMAN_CITATION
        words = [word for word in candidates if word in vocabulary]
        n_distinct = 0
        count = 0.0
        for word in words:
            is_letter = len(word) == 1 and word.isascii()
            n_distinct += not is_letter
            # Letters count half.
            count += int(counts[vocabulary[word]]) / (2 if is_letter else 1)
        if n_distinct >= _DISTINCT_SHORT and count > best_count:
            best_language = language
            best_count = count
    return best_language
