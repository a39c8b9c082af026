"""RPRS against its formula, with vectors that are told beforehand."""

import numpy as np
import pytest

from spscanner_rag.baselines import RPRS
from spscanner_rag.lab.retriever_names import check_name
from spscanner_rag.text.units import Unit

NEAR = {"Cats": 0, "Dogs": 1, "Rain": 2, "Snow": 3, "Hail": 2}


def embed(texts: list[str]) -> np.ndarray:
    """One axis for each meaning; hail is rain."""
    vectors = np.zeros((len(texts), 4))
    for row, text in enumerate(texts):
        vectors[row, NEAR[text.split()[0]]] = 3.0
    return vectors


def test_the_product_of_both_shares() -> None:
    query = "Cats came. Dogs left. Rain fell."
    text = "Hail fell. Snow fell. Cats slept. Snow melted.\nDogs ran."
    units = [Unit(0, 46, ""), Unit(47, 56, ""), Unit(11, 21, "")]
    rprs = RPRS(embed)
    got = rprs.raw_scores(query, text, units)
    assert [text[unit.start : unit.end] for unit in units] == [text[:46], "Dogs ran.", "Snow fell."]
    np.testing.assert_allclose(got, [2 / 3 * 2 / 4, 1 / 3 * 1, 0])
    scores = 1 / (1 + np.exp(-rprs.score_units(query, text, units)))
    np.testing.assert_allclose(scores, got, atol=1e-6)
    (document,) = rprs.segment(text)
    np.testing.assert_allclose(rprs.raw_scores(query, text, [document]), [1 * 3 / 5])


def test_the_threshold_is_inclusive() -> None:
    def half(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, 0.0] if "a" in text else [0.6, 0.8] for text in texts])

    unit = [Unit(0, 1, "b")]
    assert RPRS(half, threshold=0.6).raw_scores("a", "b", unit) == [1]
    assert RPRS(half, threshold=0.61).raw_scores("a", "b", unit) == [0]
    with pytest.raises(ValueError, match=r"threshold is 1\.5; expected a cosine"):
        RPRS(half, threshold=1.5)
    check_name("rprs:some/model")
