"""A document in which quotes are searched, with the places of its words."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.apps.verifying.source_words import Word, words_of_text
from spscanner_rag.apps.verifying.word_alignment import Alignment, align

MOST_PLACES: Final = 20
"""Exact places of a quote that are told."""

_MOST_CANDIDATES = 4
_UNKNOWN = -1
_LARGEST_SHARE_CHANGED = 0.5
_LEAST_WEIGHT_FOUND = 0.5
_LEAST_WEIGHT_VOTED = 0.45  # words may have moved out of the window
_SHORTEST_NEAR_QUOTE = 4  # words; shorter ones are like too much


class Stretch(NamedTuple):
    """Characters of a text."""

    start: int
    end: int


class SearchedText:
    """The words of a text, and where they stand.

    Parameters
    ----------
    text : str
    left_out : sequence of (int, int)
        Spans that are not shown to readers, such as markup, ascending.
    """

    def __init__(self, text: str, left_out: Sequence[tuple[int, int]] = ()) -> None:
        self.text = text
        self.words: list[Word] = words_of_text(text, left_out)
        self._number_of: dict[str, int] = {}
        numbers = []
        for word in self.words:
            numbers.append(self._number_of.setdefault(word.form, len(self._number_of)))
        self.numbers = np.array(numbers, np.int64)  # (words,)

    @cached_property
    def _by_number(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places of all words, grouped by number, and where each group begins."""
        order = np.argsort(self.numbers, kind="stable")
        counts = np.bincount(self.numbers, minlength=len(self._number_of))
        return order, np.concatenate([[0], np.cumsum(counts)])

    def numbers_of(self, words: Sequence[Word]) -> NDArray[np.int64]:
        """The numbers of a quote's words.

        -1 for those that the text does not have.
        """
        numbers = [self._number_of.get(word.form, _UNKNOWN) for word in words]
        return np.array(numbers, np.int64)

    def places_of(self, number: int) -> NDArray[np.int64]:
        """Where a word stands, ascending."""
        order, starts = self._by_number
        return order[starts[number] : starts[number + 1]]

    def exact(self, quote: NDArray[np.int64]) -> list[int]:
        """Where the words of a quote, (words,), begin one after the other."""
        if not len(quote) or (quote < 0).any():
            return []
        counts = [len(self.places_of(number)) for number in quote.tolist()]
        rarest = counts.index(min(counts))
        starts = self.places_of(quote[rarest]) - rarest
        starts = starts[(starts >= 0) & (starts + len(quote) <= len(self.numbers))]
        for at, number in enumerate(quote):
            starts = starts[self.numbers[starts + at] == number]
        first_places: list[int] = starts[:MOST_PLACES].tolist()
        return first_places

    def near(self, quote: NDArray[np.int64]) -> list[Alignment]:
        """Stretches like a quote, (words,), the nearest first.

        None that is not near.

        At least half of its words by rarity are in a near stretch, and at most half
        of them are changed.
        """
        if len(quote) < _SHORTEST_NEAR_QUOTE:
            return []
        weights = self._weights(quote)
        most_changed = max(1, int(len(quote) * _LARGEST_SHARE_CHANGED))
        alignments = []
        for start, stop in self._likely_windows(quote, weights):
            alignment = align(quote, self.numbers[start:stop])
            if alignment.distance > most_changed:
                continue
            unchanged = np.ones(len(quote), bool)
            for change in alignment.changes:
                unchanged[change.quote_start : change.quote_end] = False
            if weights[unchanged].sum() >= _LEAST_WEIGHT_FOUND * weights.sum():
                alignments.append(shifted(alignment, start))
        return sorted(alignments, key=lambda alignment: alignment.distance)

    def _weights(self, quote: NDArray[np.int64]) -> NDArray[np.float64]:
        """How rare each word of a quote is.

        A word that is nowhere counts as common.
        """
        weights = np.ones(len(quote))
        for at, number in enumerate(quote):
            if number >= 0:
                share = len(self.places_of(number)) / len(self.numbers)
                weights[at] = 1 + np.log10(1 / share) / 2
        return weights

    def _likely_windows(
        self, quote: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> list[tuple[int, int]]:
        """Stretches of the text that have many words of the quote at their places."""
        width = max(4, len(quote) // 2)
        n_bins = (len(self.numbers) + len(quote)) // width + 2
        votes = np.zeros(n_bins)
        for at, number in enumerate(quote):
            if number >= 0:
                bins = (self.places_of(number) - at + len(quote)) // width
                votes += (
                    np.minimum(np.bincount(bins, minlength=n_bins), 1) * (weights[at])
                )
        neighbours = votes[:-1] + votes[1:]
        best = np.argsort(-neighbours, kind="stable")[:_MOST_CANDIDATES]
        windows = []
        enough = neighbours[best] >= _LEAST_WEIGHT_VOTED * weights.sum()
        for place in best[enough].tolist():
            start = place * width - len(quote)
            stop = start + 2 * width + len(quote) + width
            windows.append((max(start - width, 0), min(stop, len(self.numbers))))
        return windows

    def stretch(self, first: int, stop: int) -> Stretch:
        """The characters of words."""
        return Stretch(self.words[first].start, self.words[stop - 1].end)


def shifted(alignment: Alignment, by: int) -> Alignment:
    """The same alignment, in a text that begins earlier."""
    changes = []
    for change in alignment.changes:
        changes.append(
            change._replace(
                text_start=change.text_start + by, text_end=change.text_end + by
            )
        )
    return Alignment(
        alignment.start + by, alignment.end + by, alignment.distance, tuple(changes)
    )
