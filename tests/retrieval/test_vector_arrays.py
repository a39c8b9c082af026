"""Arrays of vectors that do not fit together are refused."""

import numpy as np
import pytest

from spscanner_rag.retrieval.held_texts import HeldTexts
from tests.retrieval.encoded import Encoded


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("vector_rows", np.zeros((3, 4), np.int8)),
        ("vector_rows", np.zeros((6, 4), np.float32)),
        ("vector_rows", np.zeros(6, np.int8)),
        ("vector_scales", np.zeros(3, np.float16)),
        ("vector_counts", np.array([6], np.int64)),
        ("vector_counts", np.array([7, -1, 0, 0], np.int64)),
        ("vector_counts", np.array([2, 2, 1, 0], np.int64)),
        ("vector_digests", np.array(["a", "b"])),
    ],
)
def test_misfit_arrays_are_refused(
    corpus: HeldTexts, encoded: Encoded, name: str, array: np.ndarray
) -> None:
    corpus.prepare(encoded, range(4))
    arrays = corpus.to_arrays()
    assert HeldTexts.from_arrays(arrays).vectors.digests == corpus.vectors.digests
    with pytest.raises(ValueError, match=r"vectors|zip"):
        HeldTexts.from_arrays(arrays | {name: array})


def test_folders_of_earlier_versions_have_neither_digests_nor_widths(
    corpus: HeldTexts, encoded: Encoded
) -> None:
    corpus.prepare(encoded, range(4))
    arrays = dict(corpus.to_arrays())
    for name in ("vector_digests", "vector_widths"):
        del arrays[name]
    vectors = HeldTexts.from_arrays(arrays).vectors
    assert vectors.digests == {}
    assert vectors.of_text.keys() == corpus.vectors.of_text.keys()
    for text_key, of_text in vectors.of_text.items():
        expected = corpus.vectors.of_text[text_key]
        assert of_text.rows.tolist() == expected.rows.tolist()
        assert of_text.encoder == expected.encoder
