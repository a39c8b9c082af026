"""Device, dtype and tokens per pass: what "auto" takes on which machine, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.scan import devices
from spscanner_rag.scan.devices import SEGMENT_TOKENS, choose, default_segment_tokens


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make torch see the devices of a described machine."""

    def describe(
        *, cuda: int = 0, mps: bool = False, gpu_bfloat16: bool = False, cpu: tuple[str, ...] = ()
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
            monkeypatch.setattr(torch.cpu, probe, lambda probe=probe: probe in cpu, raising=False)

    return describe


def test_auto_takes_cuda_first(machine: Any) -> None:
    machine(cuda=2, mps=True, gpu_bfloat16=True)
    choice = choose()
    assert choice.device == torch.device("cuda")
    assert choice.dtype == torch.bfloat16
    assert "CUDA" in choice.device_reason
    assert "natively" in choice.dtype_reason


def test_auto_takes_mps_before_the_cpu(machine: Any) -> None:
    machine(mps=True)
    choice = choose()
    assert (choice.device.type, choice.dtype) == ("mps", torch.float32)
    assert "MPS" in choice.device_reason


def test_auto_takes_the_cpu_last(machine: Any) -> None:
    machine()
    choice = choose()
    assert (choice.device.type, choice.dtype) == ("cpu", torch.float32)
    assert "neither CUDA nor MPS" in choice.device_reason
    assert "no native bfloat16" in choice.dtype_reason


@pytest.mark.parametrize("probe", ["_is_avx512_bf16_supported", "_is_amx_tile_supported"])
@pytest.mark.parametrize(
    ("bfloat16", "expected"), [(163.0, torch.float32), (301.0, torch.float32), (900.0, torch.bfloat16)]
)
def test_auto_takes_the_faster_arithmetic_of_a_cpu_with_bfloat16(
    machine: Any, monkeypatch: pytest.MonkeyPatch, probe: str, bfloat16: float, expected: torch.dtype
) -> None:
    rates = {torch.bfloat16: bfloat16, torch.float32: 300.0}
    monkeypatch.setattr(devices, "product_rates", lambda *dtypes: tuple(rates[dtype] for dtype in dtypes))
    machine(cpu=(probe,))
    choice = choose("cpu")
    assert choice.dtype == expected
    assert choice.dtype_reason == f"products run at {bfloat16:.0f} GFLOP/s in bfloat16 and at 300 in float32"


def test_a_cpu_without_bfloat16_is_not_measured(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "product_rates", None)
    machine()
    assert choose("cpu").dtype == torch.float32


def test_old_gpu_takes_float32(machine: Any) -> None:
    machine(cuda=1, gpu_bfloat16=False)
    choice = choose()
    assert (choice.device.type, choice.dtype) == ("cuda", torch.float32)
    assert "the GPU has no native bfloat16" in choice.dtype_reason


def test_probes_that_torch_has_dropped_mean_float32(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine()
    for probe in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, probe)
    assert choose("cpu").dtype == torch.float32


@pytest.mark.parametrize("dtype", ["float32", torch.float32, "bfloat16", torch.bfloat16])
def test_asked_for(machine: Any, dtype: str | torch.dtype) -> None:
    machine()
    choice = choose("cpu", dtype)
    assert choice.device == torch.device("cpu")
    assert choice.dtype == (dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype))
    assert choice.device_reason == choice.dtype_reason == "as asked for"


@pytest.mark.parametrize("dtype", ["int8", torch.int8])
def test_int8_where_the_caller_knows_it(machine: Any, dtype: str | torch.dtype) -> None:
    machine()
    choice = choose("cpu", dtype, int8=True)
    assert (choice.dtype, choice.dtype_reason) == (torch.int8, "as asked for")
    with pytest.raises(ValueError, match=r"expected 'auto', 'float32', 'bfloat16' or 'int8'$"):
        choose("cpu", "int4", int8=True)


def test_device_objects_and_numbers(machine: Any) -> None:
    machine(cuda=2, gpu_bfloat16=True)
    assert choose(torch.device("cuda", 1)).device == torch.device("cuda:1")
    assert choose("cuda:1").device == torch.device("cuda:1")
    assert choose(torch.device("cpu")).device == torch.device("cpu")


@pytest.mark.parametrize(
    "device",
    ["tpu", "gpu", "", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cpu:-2", "meta", "xla", 0, None, 1.5, b"cpu"],
)
def test_unknown_devices(machine: Any, device: Any) -> None:
    machine(cuda=1)
    with pytest.raises(ValueError, match=r"expected 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'$") as caught:
        choose(device)
    assert repr(device) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "float16",
        "fp32",
        "",
        "Float32",
        torch.float16,
        torch.int8,
        torch.float64,
        None,
        np.float32,
        [],
    ],
)
def test_unknown_dtypes(machine: Any, dtype: Any) -> None:
    machine()
    with pytest.raises(ValueError, match=r"expected 'auto', 'float32' or 'bfloat16'$") as caught:
        choose("cpu", dtype)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_cuda_that_is_not_there(machine: Any, device: Any) -> None:
    machine()
    with pytest.raises(ValueError, match=r"CUDA is not available \(.*\); use 'cpu' or 'auto'$") as caught:
        choose(device)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "reason"), [(None, "this torch was built without it"), ("12.8", "torch sees no GPU")]
)
def test_why_there_is_no_cuda(
    machine: Any, monkeypatch: pytest.MonkeyPatch, version: str | None, reason: str
) -> None:
    machine()
    monkeypatch.setattr(torch.version, "cuda", version)
    with pytest.raises(ValueError, match=reason):
        choose("cuda")


def test_cuda_number_that_is_not_there(machine: Any) -> None:
    machine(cuda=2)
    with pytest.raises(ValueError, match="device is 'cuda:2', but there are 2 CUDA devices"):
        choose("cuda:2")


def test_mps_that_is_not_there(machine: Any) -> None:
    machine()
    with pytest.raises(
        ValueError, match="device is 'mps', which this machine does not have; use 'cpu' or 'auto'"
    ):
        choose("mps")


def test_choice_of_this_machine_works() -> None:
    choice = choose()
    assert torch.ones(2, device=choice.device, dtype=choice.dtype).sum() == 2


# Tokens per forward pass


@pytest.mark.parametrize(
    ("d_model", "d_state", "tokens"), [(16, 8, 4096), (256, 64, 2048), (768, 128, 1024), (2048, 128, 512)]
)
def test_wide_models_take_fewer_tokens_on_a_cpu(d_model: int, d_state: int, tokens: int) -> None:
    config = Mamba2Config(d_model=d_model, n_layer=1, vocab_size=8, d_state=d_state, headdim=8)
    assert default_segment_tokens("cpu", config) == tokens


@pytest.mark.parametrize("device_type", ["cuda", "mps"])
def test_other_devices_take_as_many_for_every_model(device_type: str) -> None:
    config = Mamba2Config(d_model=16, n_layer=1, vocab_size=8, headdim=8)
    assert default_segment_tokens(device_type, config) == SEGMENT_TOKENS[device_type]
