"""The words of a text or a query, their stems, and how often each unit contains each stem of a query."""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

STOP_WORDS = frozenset(
    "a about after all also am an and any are as at be because been before being between both but by can could "
    "did do does doing done during each for from had has have having he her here hers him his how i if in into is "
    "it its itself just me more most my no nor not of on once only or other our out over own s same she should so "
    "some such t than that the their them then there these they this those through to too under until up upon us "
    "very was we were what when where which while who whom whose why will with would you your".split()
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of one text, indexed once for all queries; lowercase words are numbered as they first appear."""

    starts: NDArray[np.int64]  # (words,) character positions in the joined model text
    ends: NDArray[np.int64]  # (words,)
    numbers: NDArray[np.int32]  # (words,) number of each lowercase word in the vocabulary
    units: NDArray[np.int32]  # (words,) which unit each word begins in
    vocabulary: Sequence[str]  # the lowercase words
    of_stem: Mapping[str, Sequence[int]]  # numbers of the words with this stem
    n_units: int

    @property
    def words_per_unit(self) -> NDArray[np.float64]:
        """Number of words of each unit: (units,)."""
        return np.bincount(self.units, minlength=self.n_units).astype(np.float64)


class QueryCounts(NamedTuple):
    """How often each unit contains each stem of a query, listing only the pairs that occur, by unit, then stem."""

    units: NDArray[np.int64]  # (pairs,)
    stems: NDArray[np.int64]  # (pairs,) index among the query's stems
    times: NDArray[np.int64]  # (pairs,)
    n_stems: int
    words_per_unit: NDArray[np.float64]  # (units,) words of every unit, of the query or not
    text_starts: NDArray[np.int64]  # (texts,) first unit of each text, in increasing order

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


def index_words(model_texts: Sequence[str]) -> TextWords:
    """Index the words of a text, given the ``model_text`` of its units in order."""
    starts, ends, numbers, words_per_unit = array("q"), array("q"), array("i"), array("q")
    vocabulary: dict[str, int] = {}
    number_of: dict[str, int] = {}  # by the word as it is written
    offset = 0
    for text in model_texts:
        before = len(numbers)
        for match in _WORD.finditer(text):
            word = match.group()
            number = number_of.get(word)
            if number is None:
                number = number_of[word] = vocabulary.setdefault(word.lower(), len(vocabulary))
            starts.append(match.start() + offset)
            ends.append(match.end() + offset)
            numbers.append(number)
        words_per_unit.append(len(numbers) - before)
        offset += len(text)
    units = np.repeat(np.arange(len(model_texts), dtype=np.int32), np.asarray(words_per_unit, np.int64))
    spans = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    words = list(vocabulary)
    of_stem: dict[str, list[int]] = {}
    for number, stem in enumerate(stems_of(words)):
        of_stem.setdefault(stem, []).append(number)
    return TextWords(*spans, np.asarray(numbers, np.int32), units, words, of_stem, len(model_texts))


def stems_of(words: list[str]) -> list[str]:
    """Stems of lowercase words. Words of other languages than English mostly keep their form."""
    return list(Stemmer.Stemmer("english").stemWords(words))  # a new one, since it is not thread-safe


def query_words(query: str) -> list[str]:
    """The distinct lowercase words of a query without stop words, in order; with them if it has no others."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))
    return [word for word in words if word not in STOP_WORDS] or words


def query_stems(query: str) -> list[str]:
    """The distinct stems of a query's words, in order."""
    return list(dict.fromkeys(stems_of(query_words(query))))


def count_stems(words: TextWords, stems: Sequence[str]) -> QueryCounts:
    """Count the stems of a query in the units of one text."""
    column = stem_columns(words.of_stem, stems, len(words.vocabulary))[words.numbers]  # (words,)
    found = column >= 0
    cells = words.units[found].astype(np.int64) * len(stems) + column[found]
    pairs, times = np.unique(cells, return_counts=True)
    n = max(len(stems), 1)
    starts = np.zeros(min(words.n_units, 1), np.int64)
    return QueryCounts(pairs // n, pairs % n, times, len(stems), words.words_per_unit, starts)


def stem_columns(
    of_stem: Mapping[str, Sequence[int]], stems: Sequence[str], vocabulary: int
) -> NDArray[np.int64]:
    """The index of each word's stem among ``stems``, -1 for other words: (vocabulary,)."""
    columns = np.full(vocabulary, -1, np.int64)
    for column, stem in enumerate(stems):
        columns[np.asarray(of_stem.get(stem, ()), np.int64)] = column
    return columns
