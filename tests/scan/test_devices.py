"""Device, dtype, tokens per pass and threads: what "auto" chooses on which machine, and refusals."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.mamba2 import backends
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.scan import devices
from spscanner_rag.scan.devices import choose, default_segment_tokens
from spscanner_rag.system.threads import usable_cores, use_threads


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make torch see the devices of a given machine."""

    def describe(
        *,
        cuda: int = 0,
        mps: bool = False,
        gpu_bfloat16: bool = False,
        cpu: tuple[str, ...] = (),
    ) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(
            torch.cuda,
            "is_bf16_supported",
            lambda including_emulation=True: gpu_bfloat16 or including_emulation,
        )
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        for probe in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
            monkeypatch.setattr(
                torch.cpu, probe, lambda probe=probe: probe in cpu, raising=False
            )

    return describe


@pytest.mark.parametrize(
    ("has", "device", "dtype", "device_reason", "dtype_reason"),
    [
        (
            {"cuda": 2, "mps": True, "gpu_bfloat16": True},
            "cuda",
            torch.bfloat16,
            "CUDA is available",
            "natively",
        ),
        (
            {"cuda": 1},
            "cuda",
            torch.float32,
            "CUDA is available",
            "the GPU has no native bfloat16",
        ),
        ({"mps": True}, "mps", torch.float32, "MPS is available", "always used on MPS"),
        (
            {},
            "cpu",
            torch.float32,
            "neither CUDA nor MPS",
            "the CPU has no native bfloat16",
        ),
    ],
)
def test_auto_takes_cuda_then_mps_then_the_cpu(
    machine: Any,
    has: dict[str, Any],
    device: str,
    dtype: torch.dtype,
    device_reason: str,
    dtype_reason: str,
) -> None:
    machine(**has)
    choice = choose()
    assert (choice.device, choice.dtype) == (torch.device(device), dtype)
    assert device_reason in choice.device_reason
    assert dtype_reason in choice.dtype_reason


@pytest.mark.parametrize(
    "probe", ["_is_avx512_bf16_supported", "_is_amx_tile_supported"]
)
@pytest.mark.parametrize(
    ("bfloat16", "expected"),
    [(163.0, torch.float32), (301.0, torch.float32), (900.0, torch.bfloat16)],
)
def test_auto_takes_the_faster_arithmetic_of_a_cpu_with_bfloat16(
    machine: Any,
    monkeypatch: pytest.MonkeyPatch,
    probe: str,
    bfloat16: float,
    expected: torch.dtype,
) -> None:
    rates = {torch.bfloat16: bfloat16, torch.float32: 300.0}
    monkeypatch.setattr(
        devices,
        "product_rates",
        lambda *dtypes: tuple(rates[dtype] for dtype in dtypes),
    )
    machine(cpu=(probe,))
    choice = choose("cpu")
    assert choice.dtype == expected
    assert (
        choice.dtype_reason
        == f"products run at {bfloat16:.0f} GFLOP/s in bfloat16 and at 300 in float32"
    )


def test_a_rate_counts_each_multiplication_and_addition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {
        "_TOKENS": 20,
        "_INPUTS": 10,
        "_OUTPUTS": 5,
        "time": SimpleNamespace(thread_time=count().__next__, perf_counter=None),
    }
    for name, value in sizes.items():
        monkeypatch.setattr(devices, name, value)
    rates = devices.product_rates.__wrapped__(torch.float32, torch.bfloat16)
    assert rates == pytest.approx(
        (2e-6, 2e-6)
    )  # 2,000 operations in a second of this clock


@pytest.mark.parametrize("dropped", [False, True])
def test_without_bfloat16_no_measure(
    machine: Any, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    monkeypatch.setattr(devices, "product_rates", None)
    machine()
    for probe in (
        ("_is_avx512_bf16_supported", "_is_amx_tile_supported") if dropped else ()
    ):
        monkeypatch.delattr(torch.cpu, probe)
    assert choose("cpu").dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *[
            ((device,), "expected 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'")
            for device in (
                "tpu",
                "",
                "CUDA",
                "cuda:x",
                "cuda:-1",
                "cpu:-2",
                "meta",
                0,
                None,
                1.5,
                b"cpu",
            )
        ],
        *[
            (("cpu", dtype), "expected 'auto', 'float32' or 'bfloat16'")
            for dtype in (
                "float16",
                "",
                "Float32",
                torch.float16,
                torch.float64,
                None,
                np.float32,
                [],
            )
        ],
    ],
)
def test_unknown_devices_and_dtypes(
    machine: Any, arguments: tuple[Any, ...], message: str
) -> None:
    machine(cuda=1)
    with pytest.raises(ValueError, match=f"{message}$") as caught:
        choose(*arguments)
    assert repr(arguments[-1]) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("has", "device", "message"),
    [
        (
            {},
            "cuda",
            r"device is 'cuda', but CUDA is not available \(.*\); use 'cpu' or 'auto'$",
        ),
        ({}, torch.device("cuda", 0), "CUDA is not available"),
        ({"cuda": 2}, "cuda:2", "device is 'cuda:2', but there are 2 CUDA devices"),
        (
            {},
            "mps",
            "device is 'mps', which this machine does not have; use 'cpu' or 'auto'",
        ),
    ],
)
def test_devices_that_are_not_there(
    machine: Any, has: dict[str, Any], device: Any, message: str
) -> None:
    machine(**has)
    with pytest.raises(ValueError, match=message) as caught:
        choose(device)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("d_model", "d_state", "tokens"),
    [(16, 8, 4096), (256, 64, 2048), (768, 128, 1024), (2048, 128, 512)],
)
def test_wide_models_take_fewer_tokens_on_a_cpu(
    d_model: int, d_state: int, tokens: int
) -> None:
    config = Mamba2Config(
        d_model=d_model, n_layer=1, vocab_size=8, d_state=d_state, headdim=8
    )
    assert default_segment_tokens("cpu", config) == tokens


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
    monkeypatch.setattr(devices, "usable_cores", lambda: 3)
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


def test_a_forked_child_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    monkeypatch.setattr(backends, "_alone", False)
    backends._compute_alone()
    assert use_threads(4) == 1 == torch.get_num_threads()
