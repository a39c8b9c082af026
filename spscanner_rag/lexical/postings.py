"""An inverted index of the units of texts, as plain arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

_MOST_TIMES = 2**16 - 1


class Postings(NamedTuple):
    """The units that contain each word.

    The arrays are never changed.     A posting, a distinct word of a unit, takes 6
    bytes.
    """

    # (distinct words,) numbers in a vocabulary, increasing
    words: NDArray[np.int32]
    # (distinct words + 1,): postings stops[i] to stops[i + 1] are those of words[i]
    stops: NDArray[np.int64]
    # (postings,) increasing for each word
    units: NDArray[np.int32]
    # (postings,) how often the unit contains the word, at most 65,535
    times: NDArray[np.uint16]
    # (units,)
    words_per_unit: NDArray[np.int32]
    # (texts + 1,): text i has the units text_stops[i] to text_stops[i + 1]
    text_stops: NDArray[np.int64]

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


def postings_of_text(
    numbers: NDArray[np.int32], units: NDArray[np.int32], n_units: int
) -> Postings:
    """Index one text.

    ``numbers`` and ``units``, (words,), have the number of each of its words in the
    vocabulary, and its unit.

    Examples
    --------
    >>> numbers = np.array([0, 1, 0, 0], np.int32)  # the ship the the
    >>> units = np.array([0, 0, 1, 1], np.int32)
    >>> postings = postings_of_text(numbers, units, n_units=2)
    >>> postings.units.tolist(), postings.times.tolist()
    ([0, 1, 0], [1, 2, 1])
    """
    n = max(n_units, 1)
    pairs, times = np.unique(numbers.astype(np.int64) * n + units, return_counts=True)
    return _sorted_by_word(
        (pairs // n).astype(np.int32),
        (pairs % n).astype(np.int32),
        np.minimum(times, _MOST_TIMES).astype(np.uint16),
        np.bincount(units, minlength=n_units).astype(np.int32),
        np.array([0, n_units], np.int64),
    )


def merge_postings(parts: Sequence[Postings]) -> Postings:
    """The postings of several sets of texts as one, in order, sorted by word."""
    words = []
    units = []
    text_stops = [np.zeros(1, np.int64)]
    first_unit = 0
    for part in parts:
        words.append(_word_of_each_posting(part))
        units.append(part.units + np.int32(first_unit))
        text_stops.append(part.text_stops[1:] + first_unit)
        first_unit += part.n_units
    return _sorted_by_word(
        _concatenated(words, np.int32),
        _concatenated(units, np.int32),
        _concatenated([part.times for part in parts], np.uint16),
        _concatenated([part.words_per_unit for part in parts], np.int32),
        _concatenated(text_stops, np.int64),
    )


def postings_of_texts(postings: Postings, chosen: NDArray[np.bool_]) -> Postings:
    """The postings of those texts for which ``chosen``, (texts,), is true."""
    sizes = np.diff(postings.text_stops)
    is_chosen = np.repeat(chosen, sizes)  # (units,)
    new_number = np.cumsum(is_chosen) - 1  # (units,)
    mask = is_chosen[postings.units]
    return _sorted_by_word(
        _word_of_each_posting(postings)[mask],
        new_number[postings.units[mask]].astype(np.int32),
        postings.times[mask],
        postings.words_per_unit[is_chosen],
        np.cumsum([0, *sizes[chosen]], dtype=np.int64),
    )


def check_postings(postings: Postings, n_words: int, n_texts: int) -> None:
    """Raise ``ValueError`` unless the arrays fit together.

    They must also fit a vocabulary of ``n_words`` and ``n_texts`` texts.
    """
    _check_types(postings)
    words = postings.words
    units = postings.units
    fits = {
        "words": (
            not len(words)
            or (words[0] >= 0 and words[-1] < n_words and (np.diff(words) > 0).all())
        ),
        "stops": _are_stops(postings.stops, len(words), len(units)),
        "units": not len(units) or 0 <= units.min() <= units.max() < postings.n_units,
        "times": len(postings.times) == len(units),
        "text_stops": _are_stops(postings.text_stops, n_texts, postings.n_units),
    }
    for name, array_fits in fits.items():
        if not array_fits:
            raise ValueError(
                f"{name} of the index does not fit its other arrays; it is damaged:"
                " make it again"
            )


def _check_types(postings: Postings) -> None:
    arrays: dict[str, NDArray[Any]] = postings._asdict()
    for (name, array), kind in zip(arrays.items(), "iiiuii", strict=True):
        too_short = name.endswith("stops") and not len(array)
        if array.ndim != 1 or array.dtype.kind != kind or too_short:
            raise ValueError(
                f"{name} of the index is {array.dtype} of shape {array.shape}; expected"
                " integers"
            )


def _are_stops(stops: NDArray[np.int64], n_parts: int, last: int) -> bool:
    """True if ``stops`` cut what is ``last`` long into ``n_parts``."""
    if len(stops) != n_parts + 1 or stops[0] != 0 or stops[-1] != last:
        return False
    return bool((np.diff(stops) >= 0).all())


def _sorted_by_word(
    words: NDArray[np.int32],
    units: NDArray[np.int32],
    times: NDArray[np.uint16],
    words_per_unit: NDArray[np.int32],
    text_stops: NDArray[np.int64],
) -> Postings:
    """Sort postings by word.

    Those of one word are already in the order of their units.
    """
    order = np.argsort(words, kind="stable")
    words = words[order]
    first_of_word = np.flatnonzero(np.diff(words, prepend=np.int32(-1)))
    return Postings(
        words[first_of_word],
        np.append(first_of_word, len(words)).astype(np.int64),
        units[order],
        times[order],
        words_per_unit,
        text_stops,
    )


def _word_of_each_posting(postings: Postings) -> NDArray[np.int32]:
    return np.repeat(postings.words, np.diff(postings.stops))


def _concatenated(arrays: Sequence[NDArray[Any]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)
