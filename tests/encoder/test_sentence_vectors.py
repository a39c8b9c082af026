"""Vectors rounded to bytes, and digests of sentences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spscanner_rag.encoder.sentence_vectors import SentenceVectors, digest_of


@given(arrays(np.float32, (3, 16), elements=st.floats(-10, 10, width=32)))
def test_rounded_vectors_keep_their_cosines(vectors: np.ndarray) -> None:
    question = np.ones(16, np.float32) / 4
    lengths = np.linalg.norm(vectors, axis=1)
    expected = vectors @ question / np.maximum(lengths, 1e-12)
    found = SentenceVectors.of(vectors).cosines(question)
    np.testing.assert_allclose(
        found[lengths > 1e-3], expected[lengths > 1e-3], atol=0.02
    )


def test_digests_know_where_a_sentence_ends() -> None:
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])
    assert digest_of(["ab"]) == digest_of(("ab",))


def test_the_mean_is_that_of_the_chosen_vectors() -> None:
    vectors = SentenceVectors.of(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, -2.0]]))
    mean = vectors.mean(np.array([True, True, False]))
    np.testing.assert_allclose(mean, [0.8, 0.4], atol=0.01)
    assert not vectors.mean(np.zeros(3, bool)).any()
