"""Tables of word vectors, made from any vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.word_vectors import WordVectors


def table_of(
    words: Sequence[str], vectors: NDArray[np.floating[Any]], source: str = ""
) -> WordVectors:
    """Vectors, (words, dimensions), none zero, as 8 bits scaled to unit length."""
    rounded = np.rint(
        vectors * (127 / np.abs(vectors).max(axis=1, keepdims=True, initial=0))
    ).astype(np.int8)
    return WordVectors(
        words, rounded, 1 / np.linalg.norm(rounded.astype(np.float32), axis=1), source
    )


def similarities(
    table: WordVectors, question: Sequence[str], words: Sequence[str]
) -> NDArray[np.float32]:
    """Similarity of each word to each word of a question: (words, question words)."""
    return table.similarities_of_rows(table.rows(question), table.rows(words))
