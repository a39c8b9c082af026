"""How many threads compute: affinity, siblings, control groups, what is asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.system import threads
from spscanner_rag.system.threads import threads_in_use, usable_cores, use_threads


@pytest.fixture(autouse=True)
def torch_threads() -> Iterator[None]:
    """Restore torch's threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


# as Linux numbers them: the second threads of all cores come after the first
SIBLINGS = {
    f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": (
        f"{cpu % 4},{cpu % 4 + 4}"
    )
    for cpu in range(8)
}
GROUP, TOP, APP, WORKER = (
    "proc/self/cgroup",
    *(f"sys/fs/cgroup/{path}cpu.max" for path in ("", "app/", "app/worker/")),
)
V1 = "sys/fs/cgroup/cpu/cpu.cfs_"


@pytest.mark.parametrize(
    ("cpus", "files", "cores"),
    [
        (8, {}, 8),
        *[(cpus, SIBLINGS, cores) for cpus, cores in ((8, 4), (5, 4), (4, 4), (1, 1))],
        *[
            (8, {GROUP: "3:pids:/\n0::/app/worker", where: limit}, cores)
            for where in (TOP, APP, WORKER)
            for limit, cores in (
                ("max 100000", 8),
                ("200000 100000", 2),
                ("150000 100000", 2),
                ("10000 100000", 1),
                ("1600000 100000", 8),
                ("0 0", 8),
                ("what", 8),
            )
        ],
        (
            8,
            {GROUP: "0::/app/worker", APP: "300000 100000", WORKER: "500000 100000"},
            3,
        ),
        *[
            (
                8,
                {
                    GROUP: "4:cpu:/docker/abc",
                    f"{V1}quota_us": quota,
                    f"{V1}period_us": "100000",
                },
                cores,
            )
            for quota, cores in (("-1", 8), ("250000", 3), ("50000", 1))
        ],
    ],
)
def test_cores_by_affinity_siblings_and_control_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cpus: int,
    files: dict[str, str],
    cores: int,
) -> None:
    monkeypatch.setattr(
        "os.sched_getaffinity", lambda process: range(cpus), raising=False
    )
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    assert usable_cores(tmp_path) == cores


def test_torch_stays_as_set_but_for_fewer_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "usable_cores", lambda: 3)
    for before, expected in ((1, 1), (3, 3), (5, 3)):
        torch.set_num_threads(before)
        assert use_threads() == expected == torch.get_num_threads()


def test_a_scanner_computes_with_as_many_as_asked_for(tiny_checkpoint: Path) -> None:
    for number in (2, 1, 3):
        Scanner.from_pretrained(
            tiny_checkpoint, device="cpu", dtype="float32", threads=number
        )
        assert torch.get_num_threads() == number


@pytest.mark.parametrize("number", [0, -1, 1.0, "2", True])
def test_what_is_no_number_of_threads(number: int) -> None:
    with pytest.raises(
        ValueError, match=r"threads is .*; expected a whole number of at least 1"
    ):
        Scanner.from_pretrained("no such model", threads=number)


def test_numpy_has_its_own_threads() -> None:
    before, of_torch = threads_in_use(in_numpy=True), torch.get_num_threads()
    try:
        assert use_threads(2, in_numpy=True) == 2 == threads_in_use(in_numpy=True)
        assert use_threads(1, in_numpy=True) == 1 == threads_in_use(in_numpy=True)
        assert torch.get_num_threads() == of_torch == threads_in_use(in_numpy=False)
    finally:
        use_threads(before, in_numpy=True)
