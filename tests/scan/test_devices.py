"""Device, dtype and tokens per pass: what "auto" chooses on which machine."""

from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.scan import devices
from spscanner_rag.scan.devices import choose
from spscanner_rag.scan.segment_tokens import default_segment_tokens


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
