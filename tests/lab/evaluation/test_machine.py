"""The peak memory of this process."""

import numpy as np
import pytest

from spscanner_lab.evaluation.machine import PeakMemory


def test_peak_is_that_of_what_was_done() -> None:
    before = PeakMemory().megabytes()
    if before is None:
        pytest.skip("the kernel does not tell here")
    large = PeakMemory()
    np.ones(
        100_000_000
    ).sum()  # 800 MB, freed at once; the process may free other memory meanwhile
    peak = large.megabytes()
    after = PeakMemory().megabytes()
    assert peak is not None
    assert after is not None
    assert 600 < peak - before < 900
    assert after < peak - 600
