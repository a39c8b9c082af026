"""The words of a text or a query, and their stems in the language of the text."""

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import decimal

import numpy as np
import Stemmer
from numpy.typing import NDArray

from spscanner_rag.lexical.german_stems import GERMAN, german_stems
from spscanner_rag.lexical.postings import Postings, postings_of_text
from spscanner_rag.lexical.written_forms import (
    DECIMAL_COMMA,
    depends_on_language,
    words_of,
)
from spscanner_rag.text.folding import fold_texts, folded
from spscanner_rag.text.languages import (
    CJK,
    CJK_CHARACTER,
    ENGLISH,
    OTHER,
    STOP_WORDS_OF,
    UNSPACED,
    language_of,
)
from spscanner_rag.text.scripts import LETTERS_WITH_MARKS

_WORD = re.compile(r"\w+")
# In a run of Han and kana, a word of two characters begins at each character but the
# last; others are as usual. The word is the group that matched: one of two characters
# extends beyond its match.
_CJK_WORD = re.compile(
    rf"(?=([{CJK_CHARACTER}]{{2}}))."
    rf"|(?<![{CJK_CHARACTER}])([{CJK_CHARACTER}])"
    rf"|([^\W{CJK_CHARACTER}]+)"
)
_SPACED_WORD = re.compile(f"[{LETTERS_WITH_MARKS}]+")
_UNSPACED_CHARACTER = r"\u0e01-\u0fff\u1000-\u109f\u1780-\u17d3"
# In a run of Thai or the like, a word of three characters begins at each but the last
# two; others are as usual.
_UNSPACED_WORD = re.compile(
    rf"(?=([{_UNSPACED_CHARACTER}]{{3}}))."
    rf"|(?<![{_UNSPACED_CHARACTER}])([{_UNSPACED_CHARACTER}]{{1,2}})"
    rf"|([^\W{_UNSPACED_CHARACTER}]+)"
)
_WORD_PATTERNS: Mapping[str | None, re.Pattern[str]] = {
    CJK: _CJK_WORD,
    UNSPACED: _UNSPACED_WORD,
    **dict.fromkeys(("arabic", "persian", "hebrew", "hindi", OTHER), _SPACED_WORD),
}
"""The patterns of languages whose words are not runs of letters and digits."""

_PART_CHARACTERS = 131_072  # indexed in some 10 ms


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of one text, indexed once for all queries.

    Lowercase words are numbered as they first appear.
    """

    starts: NDArray[np.int64]  # (words,) character positions in the joined model text
    ends: NDArray[np.int64]  # (words,)
    numbers: NDArray[np.int32]  # (words,) of the lowercase words in the vocabulary
    vocabulary: Sequence[str]  # the lowercase words
    of_stem: Mapping[str, Sequence[int]]  # numbers of the words with this stem
    postings: Postings  # which units the words begin in
    language: str = ENGLISH  # of `languages.language_of`

    def units_with(self, word: str) -> NDArray[np.int32]:
        """The units that have a word that has no other stem, as numbers: (units,)."""
        numbers = self.of_stem.get(word, ())
        places = np.searchsorted(self.postings.words, numbers)
        units = [np.zeros(0, np.int32)]
        for place in places:
            start, stop = self.postings.stops[place : place + 2]
            units.append(self.postings.units[start:stop])
        return np.unique(np.concatenate(units))


def index_words(
    model_texts: Sequence[str],
    language: str | None = None,
    between_parts: Callable[[], None] = lambda: None,
    fold: bool = True,
) -> TextWords:
    """Index the words of a text, from the ``model_text`` of its units.

    By default, the language is found from the words. They are folded unless ``fold`` is
    false; in `languages.CJK`, any two neighbouring characters are a word. Numbers,
    dates and measures are in one form (`lexical.written_forms`).
    ``between_parts`` is called about every `_PART_CHARACTERS`, and may raise.

    Examples
    --------
    >>> words = index_words(["The keeper slept. ", "The keepers' ship left."])
    >>> words.vocabulary
    ['the', 'keeper', 'slept', 'keepers', 'ship', 'left']
    >>> words.of_stem["keeper"]
    [1, 3]
    """
    starts = array("q")
    ends = array("q")
    numbers = array("i")
    words_per_unit = array("q")
    vocabulary: dict[str, int] = {}
    number_of: dict[str, int] = {}  # by the word as it is written
    pattern = _WORD_PATTERNS.get(language, _WORD)
    offset = 0
    pause = _PART_CHARACTERS
    for text in fold_texts(model_texts) if fold else model_texts:
        if offset >= pause:
            between_parts()
            pause = offset + _PART_CHARACTERS
        n_before = len(numbers)
        words = words_of(text, pattern, comma_is_decimal=language in DECIMAL_COMMA)
        for start, end, word in words:
            number = number_of.get(word)
            if number is None:
                number = vocabulary.setdefault(_lowercase(word), len(vocabulary))
                number_of[word] = number
            starts.append(start + offset)
            ends.append(end + offset)
            numbers.append(number)
        words_per_unit.append(len(numbers) - n_before)
        offset += len(text)
    number_array = np.asarray(numbers, np.int32)
    if language is None:
        language = language_of(vocabulary, number_array)
        reads_otherwise = language in DECIMAL_COMMA and any(
            map(depends_on_language, model_texts)
        )
        if language in _WORD_PATTERNS or reads_otherwise:
            return index_words(model_texts, language, between_parts, fold)
    n_units = len(model_texts)
    unit_numbers = np.arange(n_units, dtype=np.int32)
    units = np.repeat(unit_numbers, np.asarray(words_per_unit, np.int64))
    lowercase_words = list(vocabulary)
    return TextWords(
        np.asarray(starts, np.int64),
        np.asarray(ends, np.int64),
        number_array,
        lowercase_words,
        Stems(language, lowercase_words),
        postings_of_text(number_array, units, n_units),
        language,
    )


def words_apart(text: str, language: str) -> str:
    """A text with its words separated by spaces.

    This is for code that cuts words at white space. A text in a language whose words
    are runs of letters and digits stays as it is.
    """
    pattern = _WORD_PATTERNS.get(language)
    if pattern is None:
        return text
    matches = pattern.finditer(text)
    return " ".join(match[match.lastindex or 0] for match in matches)


class Stems(dict[str, list[int]]):
    """The numbers of a vocabulary's lowercase words with each stem of a language."""

    def __init__(self, language: str, words: Sequence[str] = ()) -> None:
        super().__init__()
        self.language = language
        self.n_words = 0
        self.learn(words)

    def learn(self, words: Sequence[str]) -> None:
        """Learn the words that come next in the vocabulary."""
        stems = stems_of(list(words), self.language)
        for number, stem in enumerate(stems, self.n_words):
            self.setdefault(stem, []).append(number)
        self.n_words += len(words)


def stems_of(words: list[str], language: str = ENGLISH) -> list[str]:
    """Stems of lowercase words.

    Words of other languages mostly keep their form.

    Examples
    --------
    >>> stems_of(["sailing", "sailed", "treaties"])
    ['sail', 'sail', 'treati']
    """
    if language == GERMAN:
        return german_stems(words)
    stemmed_as = stemmer_of(language)
    if stemmed_as is None:
        return words
    # A new stemmer, since one is not thread-safe; without its cache, which costs more
    # than stemming.
    stemmer = Stemmer.Stemmer(stemmed_as, 0)
    return list(stemmer.stemWords(words))


def stemmer_of(language: str) -> str | None:
    """The name of Snowball's stemmer for a text in a language, or None without one.

    Examples
    --------
    >>> stemmer_of("greek"), stemmer_of("cjk"), stemmer_of("vietnamese")
    ('greek', 'english', None)
    """
    if language in Stemmer.algorithms():
        return language
    # English keeps other scripts, and stems foreign names.
    return None if language in STOP_WORDS_OF else ENGLISH


@lru_cache(maxsize=16)  # One query is asked of many texts.
def query_words(query: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The distinct lowercase words of a query, in order, without stop words.

    If all are stop words, they stay. Stop words are those of the text's ``language``,
    or of English if the query has more of these.

    Examples
    --------
    >>> query_words("Who signed the treaty?")
    ('signed', 'treaty')
    """
    words = _distinct_words(query, language, language)
    english = STOP_WORDS_OF[ENGLISH]
    stop_words = STOP_WORDS_OF.get(language, english)
    if len(english & words.keys()) > len(stop_words & words.keys()):
        stop_words = english
        words = _distinct_words(query, language, ENGLISH)
    telling_words = tuple(word for word in words if word not in stop_words)
    return telling_words or tuple(words)


def _distinct_words(
    query: str, language: str, language_of_query: str
) -> dict[str, None]:
    """The lowercase words of a query, in order, as keys.

    They are cut as in the ``language`` of the text, and their numbers are read as in
    that of the query.
    """
    pattern = _WORD_PATTERNS.get(language, _WORD)
    words = words_of(
        folded(query), pattern, comma_is_decimal=language_of_query in DECIMAL_COMMA
    )
    return {_lowercase(word): None for _, _, word in words}


def _lowercase(word: str) -> str:
    """A word in small letters, or a number in ASCII digits."""
    if word.isdecimal() and not word.isascii():
        return "".join(str(decimal(digit)) for digit in word)
    return word.lower()


@lru_cache(maxsize=16)
def query_stems(query: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The distinct stems of a query's words, in order."""
    return tuple(dict.fromkeys(stems_of(list(query_words(query, language)), language)))
