"""The peak memory of this process."""

import platform
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation import machine
from spscanner_lab.evaluation.machine import PeakMemory, processor_name


def test_peak_is_that_of_what_was_done() -> None:
    before = PeakMemory().megabytes()
    if before is None:
        pytest.skip("the kernel does not tell here")
    large = PeakMemory()
    # 240 MB, freed at once; the process may free other memory meanwhile
    np.ones(30_000_000).sum()
    peak = large.megabytes()
    after = PeakMemory().megabytes()
    assert peak is not None
    assert after is not None
    assert 100 < peak - before < 300
    assert after < peak - 100


def test_a_system_that_does_not_tell_has_no_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_RESET", tmp_path / "none" / "clear_refs")
    assert PeakMemory().megabytes() is None
    monkeypatch.setattr(machine, "_RESET", tmp_path / "clear_refs")
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "status")
    (tmp_path / "status").write_text("Name: python\nVmRSS: 5 kB\n")
    assert PeakMemory().megabytes() is None
    (tmp_path / "status").write_text("Name: python\nVmHWM:    2000 kB\n")
    assert PeakMemory().megabytes() == 2.048


def test_a_processor_has_a_name_wherever_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = "processor : 0\nmodel name\t: A Fast One @ 3 GHz\nflags : fpu\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: lines)
    assert processor_name() == "A Fast One @ 3 GHz"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "flags : fpu\n")
    assert processor_name() == (platform.processor() or platform.machine())
