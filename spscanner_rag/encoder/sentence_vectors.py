"""Vectors of sentences, rounded to bytes, and a digest of the sentences."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_ONCE = 8192  # as float32, all rows would take four times their memory
SHORTEST = 1e-12  # a vector of zeros stays zeros


class SentenceVectors(NamedTuple):
    """Vectors of length 1, each as int8 with a scale.

    A sentence takes 386 bytes with the bundled encoder.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.encoder.sentence_vectors import SentenceVectors
    >>> vectors = SentenceVectors.of(np.array([[3.0, 4.0], [1.0, 0.0]]))
    >>> for cosine in vectors.cosines(np.array([1.0, 0.0], np.float32)):
    ...     print(f"{cosine:.1f}")
    0.6
    1.0
    """

    rows: NDArray[np.int8]  # (sentences, width)
    scales: NDArray[np.float16]  # (sentences,)
    encoder: str = ""  # the digest of the encoder that made them, where it is known

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> "SentenceVectors":
        """Scale vectors, (sentences, width), to length 1, and round them."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit_vectors = vectors / np.maximum(lengths, SHORTEST)
        largest = np.abs(unit_vectors).max(axis=1, initial=0)
        scales = (largest / 127).astype(np.float16)
        divisors = np.maximum(scales.astype(np.float32), 1e-6)
        rows = np.rint(unit_vectors / divisors[:, None])
        return cls(np.clip(rows, -127, 127).astype(np.int8), scales)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.rows.nbytes + self.scales.nbytes

    def cosines(self, question: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosines with a question's vector, (width,): (sentences,)."""
        products = np.empty(len(self.rows), np.float32)
        for start in range(0, len(products), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            products[block] = self.rows[block].astype(np.float32) @ question
        return products * self.scales.astype(np.float32)

    def mean(self, chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the mean of the chosen vectors, (sentences,): (width,)."""
        weights = np.where(chosen, self.scales.astype(np.float32), 0)
        total = np.zeros(self.rows.shape[1], np.float32)
        for start in range(0, len(weights), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            total += weights[block] @ self.rows[block].astype(np.float32)
        return np.asarray(total / max(int(chosen.sum()), 1), np.float32)


def digest_of(sentences: Sequence[str]) -> str:
    """Return a digest of the sentences of a text, in order."""
    digest = hashlib.sha256()
    for sentence in sentences:
        content = sentence.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors, (vectors, width), of length 1; one of zeros stays zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SHORTEST), np.float32)
