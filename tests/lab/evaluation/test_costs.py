"""Peak memory."""

import numpy as np
import pytest

from spscanner_rag.lab.evaluation.costs import PeakMemory


def test_peak_is_that_of_what_was_done() -> None:
    before = PeakMemory().megabytes()
    if before is None:
        pytest.skip("the kernel does not tell here")
    large = PeakMemory()
    np.ones(25_000_000).sum()  # 200 MB, let go of at once
    peak = large.megabytes()
    after = PeakMemory().megabytes()
    assert peak is not None
    assert after is not None
    assert 150 < peak - before < 260
    assert after < peak - 150
