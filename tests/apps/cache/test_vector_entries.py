"""Vectors in an entry come back as they were, and forged ones are refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spscanner_rag.apps.cache.vector_entries import content_of_vectors, vectors_of
from spscanner_rag.encoder.sentence_vectors import SentenceVectors

SIZES = struct.Struct("<QQ")
VECTORS = SentenceVectors.of(np.random.default_rng(0).normal(size=(5, 8)))
CONTENT = content_of_vectors(VECTORS)


def with_scales(scale: float) -> bytes:
    scales = np.full(5, scale, np.float16)
    return content_of_vectors(VECTORS._replace(scales=scales))


@settings(max_examples=30)
@given(
    arrays.arrays(
        np.int32,
        st.tuples(st.integers(0, 20), st.integers(1, 9)),
        elements=st.integers(-(10**6), 10**6),
    )
)
def test_vectors_come_back(values: np.ndarray) -> None:
    vectors = SentenceVectors.of(values)
    again = vectors_of(content_of_vectors(vectors))
    assert again is not None
    assert (again.rows == vectors.rows).all()
    assert (again.scales == vectors.scales).all()
    assert (again.rows.dtype, again.scales.dtype) == (np.int8, np.float16)
    assert again.rows.flags.writeable


@pytest.mark.parametrize("width", [384, 4096])
def test_real_widths_keep_their_length(width: int) -> None:
    draw = np.random.default_rng(width)
    for values in (
        draw.normal(size=(9, width)),
        np.ones((9, width)),
        np.eye(9, width),
        draw.random((9, width)) ** 20,
    ):
        assert vectors_of(content_of_vectors(SentenceVectors.of(values))) is not None


FORGED = {
    "nothing": b"",
    "text": b"x" * 99,
    "cut": CONTENT[:-1],
    "longer": CONTENT + b"\0",
    "one more sentence": SIZES.pack(6, 8) + CONTENT[SIZES.size :],
    "another width": SIZES.pack(8, 5) + CONTENT[SIZES.size :],
    "10**18 sentences": SIZES.pack(10**18, 8) + CONTENT[SIZES.size :],
    "no sentences of a huge width": SIZES.pack(0, 2**63),
    "not a number": with_scales(np.nan),
    "infinite": with_scales(np.inf),
    "negative": with_scales(-0.005),
    "one": with_scales(1.0),
    "tiny": with_scales(1e-6),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_was_not_written_is_refused(name: str) -> None:
    assert vectors_of(FORGED[name]) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_vectors_or_refused(data: bytes) -> None:
    vectors = vectors_of(data)
    if vectors is not None:
        cosines = vectors.cosines(np.ones(vectors.rows.shape[1], np.float32))
        assert np.isfinite(cosines).all()
