"""Draws of documents: each with all of its questions, the same for all columns."""

import numpy as np

from spscanner_rag.lab.evaluation.resampling import clusters, resampled, sign_flip_p

VALUES = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])


def test_clusters_are_documents() -> None:
    sums, counts = clusters(VALUES, ["b", "a", "b"])
    assert sums.tolist() == [[2, 20], [5, 50]]
    assert counts.tolist() == [1, 2]


def test_questions_of_a_single_document_are_clusters_of_their_own() -> None:
    sums, counts = clusters(VALUES[::-1], ["a"] * 3)
    assert sums.tolist() == VALUES.tolist()  # whatever their order was
    assert counts.tolist() == [1, 1, 1]


def test_columns_are_drawn_together() -> None:
    for documents in (["b", "a", "b"], ["a"] * 3):
        sums, counts = resampled(VALUES, documents, 50, "source", 0)
        assert sums.shape == (2, 50)
        np.testing.assert_allclose(sums[1], 10 * sums[0])
        assert len(set(sums[0].tolist())) > 2
    assert set(counts.tolist()) == {3}
    again, _ = resampled(VALUES[:, :1], ["a"] * 3, 50, "source", 0)
    assert again[0].tolist() == sums[0].tolist()  # another column changes no draw
    other, _ = resampled(VALUES, ["a"] * 3, 50, "source", 1)
    assert other.tolist() != sums.tolist()


def test_counts_are_of_the_documents_drawn() -> None:
    sums, counts = resampled(np.ones((3, 1)), ["b", "a", "b"], 50, "source", 0)
    assert sums[0].tolist() == counts.tolist()
    assert set(counts.tolist()) == {2, 3, 4}


def test_sign_flips_by_hand() -> None:
    # of the eight ways to sign 1, 2, 4 two have a sum of at least 7 or at most -7, and four one of 5
    assert sign_flip_p(np.array([1.0, 2.0, 4.0]), 8, 0) == 2 / 8
    assert sign_flip_p(np.array([-1.0, 2.0, 4.0]), 8, 0) == 4 / 8
    assert 0.15 < sign_flip_p(np.array([1.0, 2.0, 4.0]), 7, 0) <= 1  # drawn, not all tried
