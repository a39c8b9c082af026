"""Random draws: documents with replacement, for intervals, and flipped signs, for tests."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 20  # numbers drawn at a time, to bound memory


def clusters(
    values: NDArray[np.float64], documents: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums of values and numbers of questions by document; a single document is replaced by its questions.

    ``values`` are (questions, columns); returns (documents, columns) and (documents,).
    """
    numbers = {name: number for number, name in enumerate(sorted(set(documents)))}
    places = np.array([numbers[name] for name in documents])
    alone = not places.any()
    # each document's values in ascending order, so that the order of questions changes no digit
    order = np.lexsort((*values.T[::-1], places))
    counts = np.ones(len(places), np.int64) if alone else np.bincount(places)
    return np.add.reduceat(values[order], np.cumsum(counts) - counts, axis=0), counts


def resampled(
    values: NDArray[np.float64], documents: Sequence[str], resamples: int, name: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums of values, and numbers of questions, in each resample of a source's documents.

    The random stream depends on the name of the source, so the other sources do not change its resamples.
    ``values`` are (questions, columns); returns (columns, resamples) and (resamples,).
    """
    sums, counts = clusters(values, documents)
    stream = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
    random = np.random.default_rng([seed, stream])
    drawn_sums, drawn_counts = np.empty((values.shape[1], resamples)), np.empty(resamples, np.int64)
    for start, stop in _blocks(resamples, len(sums)):
        picks = random.integers(len(sums), size=(stop - start, len(sums)))
        for column, own in enumerate(sums.T):
            drawn_sums[column, start:stop] = own[picks].sum(axis=1)
        drawn_counts[start:stop] = counts[picks].sum(axis=1)
    return drawn_sums, drawn_counts


def sign_flip_p(parts: NDArray[np.float64], flips: int, seed: int) -> float:
    """Two-sided p value of the sum of ``parts``, (documents,), under the hypothesis that signs are random.

    It tries all ways to flip signs if there are at most ``flips``, else ``flips`` random ones.
    """
    # a flip whose sum differs only by rounding is as extreme as the sum found
    found = abs(float(parts.sum())) - 1e-12 * float(np.abs(parts).sum())
    exact = len(parts) < 63 and 2 ** len(parts) <= flips
    tries = 2 ** len(parts) if exact else flips
    random = np.random.default_rng(seed)
    extreme = 0
    for start, stop in _blocks(tries, len(parts)):
        if exact:
            flipped = (np.arange(start, stop)[:, None] >> np.arange(len(parts))) & 1
        else:
            flipped = random.integers(2, size=(stop - start, len(parts)))
        extreme += int((np.abs((1 - 2 * flipped) @ parts) >= found).sum())
    return extreme / tries if exact else (extreme + 1) / (tries + 1)


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold a bounded number of values together."""
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
