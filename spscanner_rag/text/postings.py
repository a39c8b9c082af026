"""An inverted index of the units of some texts as plain arrays: made, merged, cut down and checked."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.words import TextWords

T = TypeVar("T", bound=np.generic)

_MOST_TIMES = 2**16 - 1


class TextCounts(NamedTuple):
    """How often each unit of one text contains each of its words."""

    words: NDArray[np.int32]  # (pairs,) numbers in a vocabulary
    units: NDArray[np.int32]  # (pairs,)
    times: NDArray[np.uint16]  # (pairs,)
    words_per_unit: NDArray[np.int32]  # (units,)


class Postings(NamedTuple):
    """The units that contain each word; never changed. 6 bytes a posting: a distinct word of a unit."""

    words: NDArray[np.int32]  # (distinct words,) numbers in a vocabulary, increasing
    stops: NDArray[np.int64]  # (distinct words + 1,): postings stops[i] to stops[i + 1] are those of words[i]
    units: NDArray[np.int32]  # (postings,) increasing for each word
    times: NDArray[np.uint16]  # (postings,) how often the unit contains the word, at most 65,535
    words_per_unit: NDArray[np.int32]  # (units,)
    text_stops: NDArray[
        np.int64
    ]  # (texts + 1,): units text_stops[i] to text_stops[i + 1] are those of text i

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


def count_words(words: TextWords, numbers: NDArray[np.int32]) -> TextCounts:
    """Count the words of each unit of a text; ``numbers``, (vocabulary,), replace the text's own word numbers."""
    n = max(words.n_units, 1)
    pairs, times = np.unique(words.numbers.astype(np.int64) * n + words.units, return_counts=True)
    return TextCounts(
        numbers[pairs // n],
        (pairs % n).astype(np.int32),
        np.minimum(times, _MOST_TIMES).astype(np.uint16),
        np.bincount(words.units, minlength=words.n_units).astype(np.int32),
    )


def postings_of(texts: Sequence[TextCounts]) -> Postings:
    """Index texts, in order."""
    sizes = [len(text.words_per_unit) for text in texts]
    stops = np.cumsum([0, *sizes], dtype=np.int64)
    units = [text.units + np.int32(first) for text, first in zip(texts, stops, strict=False)]
    return _indexed(
        _joined([text.words for text in texts], np.int32),
        _joined(units, np.int32),
        _joined([text.times for text in texts], np.uint16),
        _joined([text.words_per_unit for text in texts], np.int32),
        stops,
    )


def merged(parts: Sequence[Postings]) -> Postings:
    """The postings of several sets of texts as one, in order."""
    if len(parts) == 1:
        return parts[0]
    firsts = np.cumsum([0, *(part.n_units for part in parts)], dtype=np.int64)
    stops = [part.text_stops[1:] + first for part, first in zip(parts, firsts, strict=False)]
    return _indexed(
        _joined([_word_of_each(part) for part in parts], np.int32),
        _joined([part.units + np.int32(first) for part, first in zip(parts, firsts, strict=False)], np.int32),
        _joined([part.times for part in parts], np.uint16),
        _joined([part.words_per_unit for part in parts], np.int32),
        _joined([np.zeros(1, np.int64), *stops], np.int64),
    )


def kept_texts(postings: Postings, kept: NDArray[np.bool_]) -> Postings:
    """The postings of those texts for which ``kept``, (texts,), is true."""
    sizes = np.diff(postings.text_stops)
    live = np.repeat(kept, sizes)  # (units,)
    number = np.cumsum(live) - 1  # (units,)
    mask = live[postings.units]
    return _indexed(
        _word_of_each(postings)[mask],
        number[postings.units[mask]].astype(np.int32),
        postings.times[mask],
        postings.words_per_unit[live],
        np.cumsum([0, *sizes[kept]], dtype=np.int64),
    )


def check(postings: Postings, n_words: int, n_texts: int) -> None:
    """Raise ``ValueError`` unless the arrays fit together, a vocabulary of ``n_words`` and ``n_texts`` texts."""
    arrays: dict[str, NDArray[Any]] = postings._asdict()
    for (name, array), kind in zip(arrays.items(), "iiiuii", strict=True):
        if array.ndim != 1 or array.dtype.kind != kind:
            raise ValueError(
                f"{name} of the index is {array.dtype} of shape {array.shape}; expected integers"
            )
    words, stops, units, times, _, text_stops = postings
    sound = {
        "words": not len(words) or (words[0] >= 0 and words[-1] < n_words and (np.diff(words) > 0).all()),
        "stops": len(stops) == len(words) + 1 and stops[0] == 0 and (np.diff(stops) >= 0).all(),
        "units": len(units) == stops[-1]
        and (not len(units) or 0 <= units.min() <= units.max() < postings.n_units),
        "times": len(times) == len(units),
        "text_stops": len(text_stops) == n_texts + 1
        and text_stops[0] == 0
        and text_stops[-1] == postings.n_units
        and (np.diff(text_stops) >= 0).all(),
    }
    for name, right in sound.items():
        if not right:
            raise ValueError(
                f"{name} of the index does not fit its other arrays; it is damaged: make it again"
            )


def _indexed(
    words: NDArray[np.int32],
    units: NDArray[np.int32],
    times: NDArray[np.uint16],
    words_per_unit: NDArray[np.int32],
    text_stops: NDArray[np.int64],
) -> Postings:
    """Sort postings by word; those of one word are in the order of their units already."""
    order = np.argsort(words, kind="stable")
    distinct, first = np.unique(words[order], return_index=True)
    return Postings(
        distinct,
        np.append(first, len(words)).astype(np.int64),
        units[order],
        times[order],
        words_per_unit,
        text_stops,
    )


def _word_of_each(postings: Postings) -> NDArray[np.int32]:
    return np.repeat(postings.words, np.diff(postings.stops))


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)
