"""Features are finite, bounded, and one row for each sentence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spscanner_rag.scan.sentence_features import (
    LEXICAL_SCORES,
    N_FEATURES,
    sentence_features,
)
from spscanner_rag.text.sentence_marks import (
    MARKS,
    question_marks,
    sentence_marks,
)

QUESTION = question_marks("Who signed it?")


@given(
    st.integers(0, 12).flatmap(
        lambda n: st.tuples(
            arrays(np.float32, n, elements=st.floats(-1, 1, width=32)),
            arrays(
                np.float32,
                (n, LEXICAL_SCORES),
                elements=st.floats(-100, 100, width=32),
            ),
        )
    )
)
def test_features_are_bounded(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    cosines, lexical_scores = scores
    marks = np.zeros((len(cosines), len(MARKS)), np.float32)
    features = sentence_features(cosines, lexical_scores, marks, QUESTION)
    assert features.shape == (len(cosines), N_FEATURES)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert np.abs(features).max(initial=0) <= 6


def test_the_best_cosine_has_the_best_standing() -> None:
    cosines = np.array([0.1, 0.7, 0.2], np.float32)
    lexical_scores = np.zeros((3, LEXICAL_SCORES), np.float32)
    marks = sentence_marks(["One. ", "Two. ", "Three. "])
    features = sentence_features(cosines, lexical_scores, marks, QUESTION)
    standing = features[:, 3 + LEXICAL_SCORES :][:, :3]  # z, rank, behind the best
    assert standing[:, 0].argmax() == 1
    assert standing[1, 1] == 0
    assert standing[1, 2] == 0
    assert (standing[[0, 2], 2] < 0).all()
