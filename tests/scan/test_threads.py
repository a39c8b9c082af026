"""How many threads compute: what was asked for, at most the physical cores that the process may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.mamba2 import forks
from spscanner_rag.scan import threads
from spscanner_rag.scan.threads import usable_cores, use_threads


@pytest.fixture(autouse=True)
def torch_threads() -> Iterator[None]:
    """Torch as it was before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Machine:
    """The files of a machine whose process may use the processors 0 to ``cpus`` - 1."""

    def __init__(self, root: Path, cpus: int) -> None:
        self.root, self.cpus = root, cpus

    def write(self, path: str, content: str) -> None:
        """Write a file of the system."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")

    def cores(self) -> int:
        """What `usable_cores` finds there."""
        return usable_cores(self.root)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with eight processors and no other files."""
    made = Machine(tmp_path, 8)
    monkeypatch.setattr(threads, "_allowed_cpus", lambda: set(range(made.cpus)))
    return made


def test_a_machine_that_tells_nothing(machine: Machine) -> None:
    assert machine.cores() == 8


@pytest.mark.parametrize(("cpus", "cores"), [(8, 4), (4, 4), (5, 4), (1, 1)])
def test_hardware_threads_of_a_core_count_once(machine: Machine, cpus: int, cores: int) -> None:
    for cpu in range(8):  # as Linux numbers them: the second threads of all cores come after the first
        machine.write(
            f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 4},{cpu % 4 + 4}"
        )
    machine.cpus = cpus
    assert machine.cores() == cores


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("10000 100000", 1),
        ("1600000 100000", 8),
        ("0 0", 8),
        ("", 8),
        ("what", 8),
    ],
)
@pytest.mark.parametrize("group", ["", "/app", "/app/worker"])
@pytest.mark.parametrize("mounted", ["", "unified/"])
def test_control_groups_of_version_2(
    machine: Machine, limit: str, cores: int, group: str, mounted: str
) -> None:
    machine.write("proc/self/cgroup", "3:pids:/\n0::/app/worker")
    machine.write(f"sys/fs/cgroup/{mounted}{group}/cpu.max", limit)
    assert machine.cores() == cores


def test_the_smallest_of_several_limits_counts(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/app/worker")
    machine.write("sys/fs/cgroup/app/cpu.max", "300000 100000")
    machine.write("sys/fs/cgroup/app/worker/cpu.max", "500000 100000")
    assert machine.cores() == 3


@pytest.mark.parametrize(("quota", "cores"), [(-1, 8), (250000, 3), (50000, 1)])
@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
@pytest.mark.parametrize("group", ["docker/abc", ""])  # the second: as it is within the container
def test_control_groups_of_version_1(
    machine: Machine, quota: int, cores: int, folder: str, group: str
) -> None:
    machine.write("proc/self/cgroup", "12:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/system.slice")
    machine.write(f"sys/fs/cgroup/{folder}/{group}/cpu.cfs_quota_us", str(quota))
    machine.write(f"sys/fs/cgroup/{folder}/{group}/cpu.cfs_period_us", "100000")
    assert machine.cores() == cores


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
def test_this_machine() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))


def test_by_default_torch_stays_as_it_is_set_unless_there_are_fewer_cores(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "usable_cores", lambda: 3)
    for before, expected in ((1, 1), (3, 3), (5, 3)):
        torch.set_num_threads(before)
        assert use_threads() == expected == torch.get_num_threads()


def test_a_scanner_computes_with_as_many_as_asked_for(tiny_checkpoint: Path) -> None:
    for number in (2, 1, 3):
        Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="float32", threads=number)
        assert torch.get_num_threads() == number


@pytest.mark.parametrize("number", [0, -1, 1.0, "2", True])
def test_what_is_no_number_of_threads(number: int) -> None:
    with pytest.raises(ValueError, match=r"threads is .*; expected a whole number of at least 1"):
        Scanner.from_pretrained("no such model", threads=number)


def test_a_forked_child_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    monkeypatch.setattr(forks, "_alone", False)
    forks._compute_alone()
    assert use_threads(4) == 1 == torch.get_num_threads()
