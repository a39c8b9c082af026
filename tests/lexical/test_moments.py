"""Z-scores of the lexical channel."""

import math

import numpy as np

from spscanner_rag.lexical.moments import tempered


def test_large_z_scores_grow_by_their_logarithm() -> None:
    z = np.array([-9.0, 0.0, 4.0, 5.0, 3 + math.e])
    np.testing.assert_allclose(tempered(z), [-9, 0, 4, 4 + math.log(2), 5])
