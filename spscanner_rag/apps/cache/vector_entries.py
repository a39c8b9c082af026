"""Vectors of sentences as the content of an entry, and back.

The content is the number of sentences, the width, the rows and the scales. Reading it
takes no more memory than the content.
"""

import struct

import numpy as np

from spscanner_rag.encoder.sentence_vectors import SentenceVectors

_SIZES = struct.Struct("<QQ")  # sentences, width
_SCALE_BYTES = 2
_ROWS_AT_ONCE = 8192
_SHORTEST = 0.9  # rounding changes a length of 1 by far less than a tenth
_LONGEST = 1.1


def content_of_vectors(vectors: SentenceVectors) -> bytes:
    """Return the content of the entry of vectors."""
    sentences, width = vectors.rows.shape
    rows = np.ascontiguousarray(vectors.rows, np.int8)
    scales = np.ascontiguousarray(vectors.scales, "<f2")
    return _SIZES.pack(sentences, width) + rows.tobytes() + scales.tobytes()


def vectors_of(content: bytes) -> SentenceVectors | None:
    """Return the vectors in a content, or None if the content has any fault.

    Examples
    --------
    >>> vectors = SentenceVectors.of(np.array([[3.0, 4.0]]))
    >>> vectors_of(content_of_vectors(vectors)).rows
    array([[ 95, 127]], dtype=int8)
    >>> vectors_of(b"another content") is None
    True
    """
    try:
        vectors = _unpacked(content)
    except Exception:  # whatever is wrong with it, the text is encoded again
        return None
    return vectors if _are_unit_vectors(vectors) else None


def _unpacked(content: bytes) -> SentenceVectors:
    """The vectors in a content, or an exception if its sizes are others."""
    sentences, width = _SIZES.unpack_from(content)
    end_of_rows = _SIZES.size + sentences * width
    if end_of_rows + sentences * _SCALE_BYTES != len(content):
        raise ValueError("other sizes than are stated")
    rows = np.frombuffer(content[_SIZES.size : end_of_rows], np.int8)
    scales = np.frombuffer(content[end_of_rows:], "<f2")
    # copies, because what is read from bytes cannot be written to
    return SentenceVectors(
        rows.reshape(sentences, width).copy(), scales.astype(np.float16)
    )


def _are_unit_vectors(vectors: SentenceVectors) -> bool:
    """Whether all vectors have the length 1, or 0."""
    for start in range(0, len(vectors.rows), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        scales = vectors.scales[block].astype(np.float32)
        rows = vectors.rows[block].astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1) * scales
        is_unit = (lengths > _SHORTEST) & (lengths < _LONGEST)
        is_zero = (lengths == 0) & np.isfinite(scales)
        if not np.all(is_unit | is_zero):
            return False
    return True
