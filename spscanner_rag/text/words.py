"""The words of a text or a query, and their stems."""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import Stemmer
from numpy.typing import NDArray

from spscanner_rag.text.postings import Postings, text_postings

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
    vocabulary: Sequence[str]  # the lowercase words
    of_stem: Mapping[str, Sequence[int]]  # numbers of the words with this stem
    postings: Postings  # which units the words begin in


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
    array_of_numbers = np.asarray(numbers, np.int32)
    postings = text_postings(array_of_numbers, units, len(model_texts))
    return TextWords(*spans, array_of_numbers, words, of_stem, postings)


def stems_of(words: list[str]) -> list[str]:
    """Stems of lowercase words. Words of other languages than English mostly keep their form."""
    # a new one, since it is not thread-safe; without its cache, which costs more than stemming
    return list(Stemmer.Stemmer("english", 0).stemWords(words))


@lru_cache(maxsize=16)  # one question is asked of many texts
def query_words(query: str) -> tuple[str, ...]:
    """The distinct lowercase words of a query without stop words, in order; with them if it has no others."""
    words = tuple(dict.fromkeys(word.lower() for word in _WORD.findall(query)))
    return tuple(word for word in words if word not in STOP_WORDS) or words


@lru_cache(maxsize=16)
def stems_of_query_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The stem of each of `query_words`."""
    return tuple(stems_of(list(words)))


@lru_cache(maxsize=16)
def indexed_query(query: str) -> TextWords:
    """The words of a query as those of a text of one unit."""
    return index_words([query.strip()])


@lru_cache(maxsize=16)
def query_stems(query: str) -> tuple[str, ...]:
    """The distinct stems of a query's words, in order."""
    return tuple(dict.fromkeys(stems_of_query_words(query_words(query))))


def stem_columns(
    of_stem: Mapping[str, Sequence[int]], stems: Sequence[str], vocabulary: int
) -> NDArray[np.int64]:
    """The index of each word's stem among ``stems``, -1 for other words: (vocabulary,)."""
    columns = np.full(vocabulary, -1, np.int64)
    for column, stem in enumerate(stems):
        columns[np.asarray(of_stem.get(stem, ()), np.int64)] = column
    return columns
