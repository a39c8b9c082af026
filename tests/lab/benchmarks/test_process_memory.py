"""The memory of this process, with and without the files of Linux."""

import resource
from pathlib import Path

import pytest

from spscanner_lab.benchmarks import process_memory


def test_the_peak_is_that_of_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text("Name: python\nVmHWM:\t    2048 kB\nVmRSS: 1 kB\n")
    monkeypatch.setattr(process_memory, "_STATUS", status)
    assert process_memory.peak_bytes() == 2048 * 1024


def test_the_peak_is_known_on_other_systems_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_memory, "_STATUS", tmp_path / "none")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    monkeypatch.setattr("sys.platform", "linux")
    assert process_memory.peak_bytes() >= peak * 1024
    monkeypatch.setattr("sys.platform", "darwin")
    assert process_memory.peak_bytes() < 2 * peak


def test_allocations_are_limited_to_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(
        "resource.setrlimit", lambda kind, pair: limits.append((kind, pair))
    )
    monkeypatch.setattr(process_memory, "_SYSTEM", tmp_path / "none")
    process_memory.allow_no_more_than_is_free()
    assert limits == []
    system = tmp_path / "meminfo"
    system.write_text("MemTotal: 9 kB\nMemAvailable:    7 kB\n")
    monkeypatch.setattr(process_memory, "_SYSTEM", system)
    process_memory.allow_no_more_than_is_free()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    assert limits == [(resource.RLIMIT_AS, (7 * 1024, hard))]
