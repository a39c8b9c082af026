"""Token sequences, and how several of them are laid out to be read together."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

AfterStep = Callable[[int], None] | None
"""Called after each step with the number of tokens read in it; an exception that it
raises ends the reading."""

PADDING_SHARE = 0.125
"""Maximum share of padding in a step's tokens: sequences that differ more in length
do not share a step."""


class TokenSequence(NamedTuple):
    """One sequence to read and the positions whose logits are wanted."""

    input_ids: NDArray[np.integer]  # (tokens,)
    positions: NDArray[np.int64]  # (units,), not decreasing
    match_classes: NDArray[np.integer] | None = None  # (tokens,)
    prior: NDArray[np.float32] | None = None  # (units, scores), `ScannerModel.score`
    match_features: NDArray[np.float32] | None = None  # (tokens, SOFT_FEATURES)


def group_by_length(lengths: Sequence[int], segment_tokens: int) -> list[list[int]]:
    """Return groups of indices of sequences to read together, longest first.

    A group fits into one step, with padding of at most `PADDING_SHARE`.

    Examples
    --------
    >>> from spscanner_rag.mamba2.token_sequences import group_by_length
    >>> group_by_length([10, 100, 98], segment_tokens=512)
    [[1, 2], [0]]
    """
    groups: list[list[int]] = []
    longest = 0
    total = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        length = lengths[number]
        padded = longest * (len(groups[-1]) + 1) if groups else 0
        padding = padded - (total + length)
        fits = padded <= segment_tokens and padding <= PADDING_SHARE * padded
        if groups and fits:
            groups[-1].append(number)
            total += length
        else:
            groups.append([number])
            longest = length
            total = length
    return groups


class SequenceBatch(NamedTuple):
    """Sequences laid out for the model: all in one row, or each in a padded row."""

    input_ids: NDArray[np.int64]  # (rows, tokens)
    match_classes: NDArray[np.int64] | None  # (rows, tokens)
    match_features: NDArray[np.float32] | None  # (rows, tokens, SOFT_FEATURES)
    prior: NDArray[np.float32] | None  # (units, scores)
    unit_rows: NDArray[np.int64]  # (units,)
    unit_tokens: NDArray[np.int64]  # (units,): the unit's token in its row
    starts: NDArray[np.int64]  # (sequences,) the first token of each in its row
    stops: NDArray[np.int64]  # (sequences,)
    # (tokens,) the number of each token's sequence, if they share a row
    numbers: NDArray[np.int32] | None

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence], *, packed: bool) -> Self:
        """Lay out sequences.

        Padding comes only after a sequence's end, so it changes no logit.
        """
        lengths = np.array(
            [len(sequence.input_ids) for sequence in sequences], np.int64
        )
        numbers = np.arange(len(sequences))
        numbers_of_tokens = None
        if packed:
            rows = np.zeros_like(numbers)
            starts = np.cumsum(lengths) - lengths
            numbers_of_tokens = np.repeat(numbers.astype(np.int32), lengths)
        else:
            rows = numbers
            starts = np.zeros_like(lengths)
        layout = _Places(rows, starts, lengths)
        priors = []
        unit_tokens = []
        for sequence, start in zip(sequences, starts, strict=True):
            unit_tokens.append(sequence.positions + start)
            if sequence.prior is not None:
                priors.append(sequence.prior)
        units = [len(positions) for positions in unit_tokens]
        return cls(
            input_ids=layout.filled([s.input_ids for s in sequences], np.int64),
            match_classes=layout.filled([s.match_classes for s in sequences], np.int64),
            match_features=layout.filled(
                [s.match_features for s in sequences], np.float32
            ),
            prior=np.concatenate(priors) if priors else None,
            unit_rows=np.repeat(rows, units),
            unit_tokens=np.concatenate(unit_tokens),
            starts=starts,
            stops=starts + lengths,
            numbers=numbers_of_tokens,
        )

    def tokens_between(self, start: int, stop: int) -> int:
        """Return how many tokens of all sequences lie in these columns."""
        stops = np.clip(self.stops, start, stop)
        starts = np.clip(self.starts, start, stop)
        return int((stops - starts).sum())


class _Places(NamedTuple):
    """Where each sequence lies in the rows of a batch: each (sequences,)."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def filled(
        self, parts: Sequence[NDArray[Any] | None], dtype: type[np.generic]
    ) -> Any:  # noqa: ANN401 - an array, or None if the sequences have none
        """The sequences' values in rows, zeros where there is no sequence."""
        if parts[0] is None:
            return None
        n_rows = int(self.rows[-1]) + 1
        width = int((self.starts + self.lengths).max())
        filled = np.zeros((n_rows, width, *parts[0].shape[1:]), dtype)
        for row, start, length, values in zip(*self, parts, strict=True):
            filled[row, start : start + length] = values
        return filled
