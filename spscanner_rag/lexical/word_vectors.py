"""Vectors of single words, in 8 bits a number, and how near two words are in meaning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SIMILARITY_START: Final = 0.4
"""Cosine up to which two words have nothing to do with each other: their similarity is 0."""

SIMILARITY_POWER: Final = 2
"""The similarity rises from 0 at `SIMILARITY_START` to 1 at a cosine of 1 with this power."""

MOST_DIMENSIONS: Final = 128
UNKNOWN: Final = -1  # the row of a word that is not in the table
_WORDS_AT_ONCE = 4096


class WordVectors:
    """A table of words and their vectors of unit length: the row of ``vectors`` times its scale.

    ``words`` are in lower case, ``vectors`` (words, dimensions), int8, ``scales`` (words,); ``source`` names what
    they were made with. ``ValueError`` for other arrays, an empty or double word, or a row without unit length.
    """

    def __init__(
        self, words: Sequence[str], vectors: NDArray[np.int8], scales: NDArray[np.floating], source: str = ""
    ) -> None:
        _check_arrays(words, vectors, scales)
        self.words: tuple[str, ...] = tuple(words)
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) < len(self.words) or "" in self._rows:
            raise ValueError("a word is empty or there twice; expected every word once, none of them empty")
        self.vectors = vectors
        self.scales = scales.astype(np.float32)
        self.source = source

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        """Its size and its source, for people."""
        made = f", made with {self.source}" if self.source else ""
        return f"{len(self):,} words of {self.dimensions} dimensions{made}"

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each word, given in lower case; `UNKNOWN` if it is not in the table: (words,)."""
        return np.fromiter((self._rows.get(word, UNKNOWN) for word in words), np.int32)

    def of_rows(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Vectors of unit length, of rows of the table: (rows, dimensions)."""
        vectors: NDArray[np.float32] = self.vectors[rows].astype(np.float32) * self.scales[rows, None]
        return vectors

    def similarities_of_rows(
        self, question_rows: NDArray[np.integer[Any]], rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.float32]:
        """Similarity in meaning of words, from 0 to 1, 0 for unknown ones: (rows, question rows)."""
        similar = np.zeros((len(rows), len(question_rows)), np.float32)
        asked, known = np.flatnonzero(question_rows >= 0), np.flatnonzero(rows >= 0)
        if not len(asked):
            return similar
        question = self.of_rows(question_rows[asked]).T  # (dimensions, known question words)
        for start in range(0, len(known), _WORDS_AT_ONCE):
            some = known[start : start + _WORDS_AT_ONCE]
            values = self.of_rows(rows[some]) @ question  # (some words, known question words)
            values = np.clip((values - SIMILARITY_START) * (1 / (1 - SIMILARITY_START)), 0, 1)  # at most 1
            similar[np.ix_(some, asked)] = values**SIMILARITY_POWER
        return similar

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table as arrays, for a file; `from_arrays` reads it back."""
        texts = "\n".join(self.words), self.source
        words, source = (np.frombuffer(text.encode(), np.uint8) for text in texts)
        return {"words": words, "vectors": self.vectors, "scales": self.scales, "source": source}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "WordVectors":
        """Read the arrays of `to_arrays`; raises ``ValueError`` for others."""
        if arrays.keys() | {"source"} != {"words", "vectors", "scales", "source"}:
            raise ValueError(
                f"arrays {', '.join(sorted(arrays))}; expected scales, source, vectors and words"
            )
        words = _text_of("words", arrays["words"])
        source = _text_of("source", arrays["source"]) if "source" in arrays else ""
        return cls(words.split("\n") if words else [], arrays["vectors"], arrays["scales"], source)


def _text_of(name: str, stored: NDArray[Any]) -> str:
    """The text of an array of bytes; ``ValueError``, which names the array, for any other."""
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ValueError(f"{name} is {stored.dtype} of shape {stored.shape}; expected bytes: uint8, one row")
    try:
        return stored.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: {error}; expected UTF-8") from None


def _check_arrays(words: Sequence[str], vectors: NDArray[np.int8], scales: NDArray[np.floating]) -> None:
    if vectors.dtype != np.int8 or vectors.ndim != 2 or not 1 <= vectors.shape[1] <= MOST_DIMENSIONS:
        raise ValueError(
            f"vectors is {vectors.dtype} of shape {vectors.shape}; expected int8, (words, 1 to"
            f" {MOST_DIMENSIONS} dimensions)"
        )
    if scales.dtype.kind != "f" or scales.ndim != 1 or not len(words) == len(vectors) == len(scales):
        raise ValueError(
            f"scales is {scales.dtype} of shape {scales.shape}, of {len(words)} words, {len(vectors)} vectors and "
            f"{len(scales)} scales; expected floating-point, (words,), and equally many"
        )
    # float16 scales are exact to one part in 2,000
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1) * scales.astype(np.float32)
    if not (np.abs(lengths - 1) < 0.01).all():  # NaN compares as false
        odd = int(np.argmin(np.abs(lengths - 1) < 0.01))
        raise ValueError(
            f"the vector of {words[odd]!r} has length {lengths[odd]}; expected 1: NaN, infinity, or another scale"
        )
