"""Vectors of words, and the similarity of words in meaning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SIMILARITY_START: Final = 0.4
"""Two words whose cosine is at most this have nothing to do with each other: their
similarity is 0."""

SIMILARITY_POWER: Final = 2
"""The similarity rises from 0 at `SIMILARITY_START` to 1 at a cosine of 1 with this
power."""

MOST_DIMENSIONS: Final = 128
UNKNOWN: Final = -1  # the row of a word that is not in the table
_WORDS_AT_ONCE = 4096


class WordVectors:
    """A table of words and their vectors of unit length.

    A vector is the row of ``vectors`` times its scale.

    Parameters
    ----------
    words : sequence of str
        In lower case, each once.
    vectors : array of int8, shape (words, dimensions)
        The directions.
    scales : array of float, shape (words,)
        What makes each row a vector of unit length.
    source : str
        Names what made them.

    Raises
    ------
    ValueError
        For other arrays, an empty or repeated word, or a row without unit length.

    Examples
    --------
    >>> vectors = np.array([[100, 0], [90, 44]], np.int8)
    >>> scales = 1 / np.linalg.norm(vectors.astype(float), axis=1)
    >>> table = WordVectors(["ship", "boat"], vectors, scales)
    >>> rows = table.rows(["boat", "tree"])
    >>> for similarity in table.similarities_of_rows(table.rows(["ship"]), rows):
    ...     print(f"{similarity[0]:.2f}")
    0.69
    0.00
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: NDArray[np.int8],
        scales: NDArray[np.floating],
        source: str = "",
    ) -> None:
        _check_arrays(words, vectors, scales)
        self.words: tuple[str, ...] = tuple(words)
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) < len(self.words) or "" in self._rows:
            raise ValueError(
                "a word is empty or there twice; expected every word once, none of them"
                " empty"
            )
        self.vectors = vectors
        self.scales = scales.astype(np.float32)
        self.source = source

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        """Its size and its source, for people."""
        size = f"{len(self):,} words of {self.dimensions} dimensions"
        return f"{size}, made with {self.source}" if self.source else size

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each lowercase word: (words,).

        It is `UNKNOWN` for a word that is not in the table.
        """
        return np.fromiter((self._rows.get(word, UNKNOWN) for word in words), np.int32)

    def of_rows(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Vectors of unit length of rows of the table: (rows, dimensions)."""
        directions = self.vectors[rows].astype(np.float32)
        vectors: NDArray[np.float32] = directions * self.scales[rows, None]
        return vectors

    def similarities_of_rows(
        self, query_rows: NDArray[np.integer[Any]], rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.float32]:
        """Similarity of words in meaning, from 0 to 1: (rows, query rows).

        It is 0 for unknown words.
        """
        similarities = np.zeros((len(rows), len(query_rows)), np.float32)
        columns = np.flatnonzero(query_rows >= 0)
        in_table = np.flatnonzero(rows >= 0)
        if not len(columns):
            return similarities
        query_vectors = self.of_rows(query_rows[columns]).T  # (dimensions, columns)
        for start in range(0, len(in_table), _WORDS_AT_ONCE):
            some = in_table[start : start + _WORDS_AT_ONCE]
            cosines = self.of_rows(rows[some]) @ query_vectors  # (some, columns)
            above_start = (cosines - SIMILARITY_START) * (1 / (1 - SIMILARITY_START))
            values = np.clip(above_start, 0, 1) ** SIMILARITY_POWER
            similarities[np.ix_(some, columns)] = values
        return similarities

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table as arrays, for a file that `from_arrays` reads back."""
        return {
            "words": np.frombuffer("\n".join(self.words).encode(), np.uint8),
            "vectors": self.vectors,
            "scales": self.scales,
            "source": np.frombuffer(self.source.encode(), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "WordVectors":
        """Read the arrays of `to_arrays`, and raise ``ValueError`` for others."""
        if arrays.keys() | {"source"} != {"words", "vectors", "scales", "source"}:
            raise ValueError(
                f"arrays {', '.join(sorted(arrays))}; expected scales, source, vectors"
                " and words"
            )
        joined_words = _text_of("words", arrays["words"])
        words = joined_words.split("\n") if joined_words else []
        source = _text_of("source", arrays["source"]) if "source" in arrays else ""
        return cls(words, arrays["vectors"], arrays["scales"], source)


def _text_of(name: str, stored: NDArray[Any]) -> str:
    """The text of an array of bytes.

    It raises ``ValueError``, which names the array, for any other array.
    """
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ValueError(
            f"{name} is {stored.dtype} of shape {stored.shape}; expected bytes: uint8,"
            " one row"
        )
    try:
        return stored.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: {error}; expected UTF-8") from None


def _check_arrays(
    words: Sequence[str], vectors: NDArray[np.int8], scales: NDArray[np.floating]
) -> None:
    is_table = vectors.dtype == np.int8 and vectors.ndim == 2
    if not is_table or not 1 <= vectors.shape[1] <= MOST_DIMENSIONS:
        raise ValueError(
            f"vectors is {vectors.dtype} of shape {vectors.shape}; expected int8,"
            f" (words, 1 to {MOST_DIMENSIONS} dimensions)"
        )
    are_scales = scales.dtype.kind == "f" and scales.ndim == 1
    if not are_scales or not len(words) == len(vectors) == len(scales):
        raise ValueError(
            f"scales is {scales.dtype} of shape {scales.shape}, of {len(words)} words,"
            f" {len(vectors)} vectors and {len(scales)} scales; expected"
            " floating-point, (words,), and equally many"
        )
    # Scales of float16 are exact to one part in 2,000.
    norms = np.linalg.norm(vectors.astype(np.float32), axis=1)
    lengths = norms * scales.astype(np.float32)
    has_unit_length = np.abs(lengths - 1) < 0.01  # false for NaN
    if not has_unit_length.all():
        odd = int(np.argmin(has_unit_length))
        raise ValueError(
            f"the vector of {words[odd]!r} has length {lengths[odd]}; expected 1: NaN,"
            " infinity or a wrong scale"
        )
