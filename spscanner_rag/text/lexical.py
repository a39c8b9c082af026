"""The in-document lexical channel: which words of a document also occur in the query, and BM25 scores per unit.

A small model cannot learn from a few thousand questions that "Ahab" in the query and "Ahab" in the document are
the same; this channel tells it. Everything is relative to one document: the units are BM25's documents, and a
word's idf is its rarity among them. Only the last step, which gives each token the class of its word, depends on
the model's tokenizer.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

IDF_EDGES = (1.5, 2.5, 3.5, 5.0)
"""Boundaries, as idf with natural logarithm, between match classes 1 to 5; class 5 has the rarest words."""

BM25_K1, BM25_B = 1.5, 0.75

REACH = (1, 3, 8)
"""Three sizes of a unit's surroundings: this many units before it, the unit, and this many after it."""

STOP_WORDS = frozenset(
    "a about after all also am an and any are as at be because been before being between both but by can could "
    "did do does doing done during each for from had has have having he her here hers him his how i if in into is "
    "it its itself just me more most my no nor not of on once only or other our out over own s same she should so "
    "some such t than that the their them then there these they this those through to too under until up upon us "
    "very was we were what when where which while who whom whose why will with would you your".split()
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """The words of one document, indexed once for all queries; stems are numbered in order of first appearance."""

    word_starts: NDArray[np.int64]  # (words,) character positions in the joined model text
    word_ends: NDArray[np.int64]  # (words,)
    word_stems: NDArray[np.int32]  # (words,)
    word_units: NDArray[np.int32]  # (words,) which unit each word begins in
    stem_numbers: dict[str, int]
    n_units: int


@dataclass(frozen=True, slots=True)
class LexicalMatch:
    """The lexical match of a query with a document."""

    token_classes: NDArray[np.uint8]  # (document tokens,): 0 none, 1 to 5 by idf
    prior: NDArray[np.float32]  # (units,): BM25 scores as z-scores over the document's units
    surroundings: NDArray[np.float32] | None  # (units, 3): the same for the text around each unit, by `REACH`


def index_words(model_texts: Sequence[str]) -> LexicalIndex:
    """Index the words of a document, given the ``model_text`` of its units in order."""
    starts, ends, stems, words_per_unit = array("q"), array("q"), array("i"), array("q")
    numbers: dict[str, int] = {}
    number_of_word: dict[str, int] = {}
    stemmer = _stemmer()
    offset = 0
    for text in model_texts:
        before = len(stems)
        for match in _WORD.finditer(text):
            word = match.group()
            number = number_of_word.get(word)
            if number is None:
                number = numbers.setdefault(stemmer.stemWord(word.lower()), len(numbers))
                number_of_word[word] = number
            starts.append(match.start() + offset)
            ends.append(match.end() + offset)
            stems.append(number)
        words_per_unit.append(len(stems) - before)
        offset += len(text)
    units = np.repeat(np.arange(len(model_texts), dtype=np.int32), np.asarray(words_per_unit, np.int64))
    spans = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    return LexicalIndex(*spans, np.asarray(stems, np.int32), units, numbers, len(model_texts))


def query_stems(query: str) -> list[str]:
    """The distinct stems of a query without stop words, in order; with them if it has only stop words."""
    words = [word.lower() for word in _WORD.findall(query)]
    content = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(_stemmer().stemWords(content or words)))


def match_query(
    index: LexicalIndex,
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    surroundings: bool = False,
    least_units: int = 0,
) -> LexicalMatch:
    """Match a query with a document; with ``surroundings``, also score the text around each unit.

    ``token_starts`` and ``token_ends``, (document tokens,), are character positions of the model's tokens in the
    joined model text. A token gets the class of the word that its last character belongs to.

    A document with fewer than ``least_units`` units is scored as if units without any word of the query were
    added. (In a text of three sentences no word is rare, so no score could stand out.) If no unit differs from
    another, the added ones included, all scores are 0.
    """
    wanted = [index.stem_numbers[s] for s in query_stems(query) if s in index.stem_numbers]
    counts = _counts(index, wanted)
    frequency = np.bincount(counts.stems, minlength=len(wanted))  # (matched stems,) units that hold the stem
    idf = np.log1p((max(index.n_units, least_units) - frequency + 0.5) / (frequency + 0.5))

    class_of_stem = np.zeros(len(index.stem_numbers) + 1, np.uint8)
    class_of_stem[wanted] = 1 + np.searchsorted(IDF_EDGES, idf, side="right")
    token_classes = np.zeros(len(token_starts), np.uint8)
    if len(index.word_starts):
        # the last word that starts before the token's end, if it extends to that end
        word = np.searchsorted(index.word_starts, token_ends, side="left") - 1  # (tokens,)
        reaches = (word >= 0) & (index.word_ends[word] >= token_ends) & (token_ends > token_starts)
        token_classes[reaches] = class_of_stem[index.word_stems[word[reaches]]]
    prior = standardized(_bm25(counts, idf, index), least_units).astype(np.float32)
    if not surroundings:
        return LexicalMatch(token_classes, prior, None)
    # In a short text every unit's surroundings are the whole text. Their equal scores must stay 0, so no units are
    # added for comparison.
    around = [
        standardized(scores, least_units if (np.abs(np.diff(scores)) > 1e-9).any() else 0)
        for scores in _bm25_around(counts, idf, index)
    ]
    return LexicalMatch(token_classes, prior, np.stack(around, axis=1).astype(np.float32))


def _stemmer() -> Stemmer.Stemmer:
    """A new stemmer, since it is not thread-safe. Words of other languages than English mostly keep their form."""
    return Stemmer.Stemmer("english")


class _Counts(NamedTuple):
    """How often each unit contains each stem of the query, listing only the pairs that occur."""

    units: NDArray[np.int64]  # (pairs,)
    stems: NDArray[np.int64]  # (pairs,) index among the query's stems
    times: NDArray[np.int64]  # (pairs,)


def _counts(index: LexicalIndex, wanted: list[int]) -> _Counts:
    column = np.full(len(index.stem_numbers) + 1, -1, np.int64)
    column[wanted] = np.arange(len(wanted))
    columns = column[index.word_stems]  # (words,)
    found = columns >= 0
    cells = index.word_units[found].astype(np.int64) * len(wanted) + columns[found]
    pairs, times = np.unique(cells, return_counts=True)
    return _Counts(pairs // max(len(wanted), 1), pairs % max(len(wanted), 1), times)


def _bm25(counts: _Counts, idf: NDArray[np.float64], index: LexicalIndex) -> NDArray[np.float64]:
    """Robertson's BM25 with k1 = 1.5, b = 0.75 and Lucene's never-negative idf: (units,)."""
    saturation = _saturation(_words_per_unit(index))  # (units,)
    weights = idf[counts.stems] * counts.times * (BM25_K1 + 1) / (counts.times + saturation[counts.units])
    return np.asarray(np.bincount(counts.units, weights, minlength=index.n_units), np.float64)


def _bm25_around(
    counts: _Counts, idf: NDArray[np.float64], index: LexicalIndex
) -> Iterator[NDArray[np.float64]]:
    """Yield the BM25 of the text around each unit, with the units' idf, for each size in `REACH`: (units,)."""
    order = np.argsort(counts.stems, kind="stable")
    of_stem = np.searchsorted(counts.stems[order], np.arange(len(idf) + 1))
    words = _words_per_unit(index)
    for reach in REACH:
        saturation = _saturation(_sums_around(words, reach))  # (units,)
        scores = np.zeros(index.n_units)
        for stem, rarity in enumerate(idf):
            pairs = order[of_stem[stem] : of_stem[stem + 1]]
            times = np.bincount(counts.units[pairs], counts.times[pairs], minlength=index.n_units)
            near = _sums_around(times.astype(np.float64), reach)  # (units,)
            scores += rarity * near * (BM25_K1 + 1) / (near + saturation)
        yield scores


def _words_per_unit(index: LexicalIndex) -> NDArray[np.float64]:
    return np.bincount(index.word_units, minlength=index.n_units).astype(np.float64)


def _saturation(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """BM25's k1 times its length norm, for texts of these lengths: (texts,)."""
    relative = lengths / max(lengths.mean(), 1.0) if len(lengths) else lengths
    return np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * relative), np.float64)


def _sums_around(values: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Sum of each value and up to ``reach`` values before and after it: (values,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    numbers = np.arange(len(values))
    first, stop = np.maximum(numbers - reach, 0), np.minimum(numbers + reach + 1, len(values))
    return np.asarray(sums[stop] - sums[first], np.float64)


def standardized(scores: NDArray[np.floating], least_units: int = 0) -> NDArray[np.float64]:
    """Z-scores of the units, computed with zeros added up to ``least_units``; 0 if none differ: (units,)."""
    values = scores.astype(np.float64)
    n = max(len(values), least_units, 1)
    mean = values.sum() / n
    spread = np.sqrt((np.square(values - mean).sum() + (n - len(values)) * mean**2) / n)
    return np.zeros(len(values)) if spread < 1e-9 else (values - mean) / spread
