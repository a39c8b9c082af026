"""The kernels that numba compiles, against plain torch.

Test_model.py and test_reader.py have whole models.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spscanner_rag.mamba2 import backends
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import (
    TORCH_KERNELS,
    GatedRMSNorm,
    RMSNorm,
    ScanOperands,
)
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.system.install_hints import install_line

pytest.importorskip("numba")
from spscanner_rag.mamba2.kernels.numba.kernels import NumbaKernels

NUMBA = NumbaKernels()
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
CPU = torch.device("cpu")


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> int:
    """With as many threads as torch has."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def config_of(**others: object) -> Mamba2Config:
    return Mamba2Config(
        **{"d_model": 32, "n_layer": 1, "vocab_size": 50, "headdim": 8} | others
    )


def part_of_a_projection(*shape: int, dtype: torch.dtype) -> Tensor:
    """Random numbers whose rows are parts of longer rows, as in a layer."""
    return torch.randn(*shape[:-1], shape[-1] + 5).to(dtype)[..., 3:-2]


def close(got: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    torch.testing.assert_close(
        got.float(), expected.float(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype] / 4
    )


# Each step against torch


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("d_conv", "tokens"), [(4, 1), (4, 200), (2, 3), (1, 5)])
def test_convolve(
    threads: int, dtype: torch.dtype, with_bias: bool, d_conv: int, tokens: int
) -> None:
    conv = nn.Conv1d(21, 21, d_conv, groups=21, bias=with_bias).to(dtype)
    inputs = part_of_a_projection(2, tokens, 21, dtype=dtype)
    tail = torch.randn(2, d_conv - 1, 21).to(dtype)
    got, tail_after = NUMBA.convolve(conv, inputs, tail, None)
    expected, expected_tail = TORCH_KERNELS.convolve(conv, inputs, tail, None)
    close(got, expected, dtype)
    torch.testing.assert_close(tail_after, expected_tail, atol=0, rtol=0)


def operands_of(
    config: Mamba2Config,
    tokens: int,
    batch: int = 2,
    dtype: torch.dtype = torch.float32,
) -> ScanOperands:
    heads, headdim = config.nheads, config.headdim
    group_width = config.ngroups * config.d_state
    xBC = part_of_a_projection(
        batch, tokens, config.d_inner + 2 * group_width, dtype=dtype
    )
    x, B, C = xBC.split([config.d_inner, group_width, group_width], -1)
    return ScanOperands(
        x.unflatten(-1, (heads, headdim)),
        part_of_a_projection(batch, tokens, heads, dtype=dtype),
        torch.randn(heads),
        -torch.rand(heads) * 8,
        B.unflatten(-1, (config.ngroups, -1)),
        C.unflatten(-1, (config.ngroups, -1)),
        torch.randn(heads, headdim) if config.D_has_hdim else torch.randn(heads),
    )


def state_of(config: Mamba2Config, batch: int = 2) -> Tensor:
    return torch.randn(batch, config.nheads, config.headdim, config.d_state)


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 100])
@pytest.mark.parametrize(
    "others",
    [
        {},
        {"d_state": 5},
        {"headdim": 64, "d_state": 64},
        {"headdim": 32, "d_state": 16, "ngroups": 2, "D_has_hdim": True},
        {"dt_limit": (0.05, 0.5)},
    ],
)
def test_scan(
    threads: int, others: dict[str, object], tokens: int, dtype: torch.dtype
) -> None:
    config = config_of(**others)
    operands, state = operands_of(config, tokens, dtype=dtype), state_of(config)
    given = state.clone()
    got, after = NUMBA.scan(operands, state, config, None)
    # torch rounds more than the output to bfloat16
    exact = ScanOperands(*(part.float() for part in operands))
    expected, expected_after = TORCH_KERNELS.scan(exact, state, config, None)
    close(got, expected.to(dtype), dtype)
    close(after, expected_after, torch.float32)
    assert torch.equal(state, given)  # the incoming state is not changed


@torch.inference_mode()
def test_a_state_fades_to_zero_not_to_denormal_numbers() -> None:
    config = config_of()
    operands = operands_of(config, 400)
    silent = operands._replace(
        x=torch.zeros_like(operands.x),
        dt=torch.full_like(operands.dt, 0.1),
        A=torch.full((config.nheads,), -3.0),
        dt_bias=torch.zeros(config.nheads),
    )
    _, after = NUMBA.scan(silent, state_of(config), config, None)
    assert not after.any()


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("before_gate", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
def test_gated_norm(
    threads: int, dtype: torch.dtype, before_gate: bool, groups: int
) -> None:
    config = config_of(ngroups=groups, norm_before_gate=before_gate)
    norm = GatedRMSNorm(config).to(dtype)
    norm.weight.data.normal_()
    for shape in ((2, 150, config.d_inner), (7, config.d_inner), (0, config.d_inner)):
        y, z = torch.randn(shape).to(dtype), part_of_a_projection(*shape, dtype=dtype)
        close(NUMBA.gated_norm(norm, y, z), TORCH_KERNELS.gated_norm(norm, y, z), dtype)


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norm(threads: int, dtype: torch.dtype) -> None:
    norm = RMSNorm(48, 1e-5).to(dtype)
    norm.weight.data.normal_()
    x = torch.randn(2, 150, 48)
    close(NUMBA.norm(norm, x), TORCH_KERNELS.norm(norm, x), dtype)


def test_with_gradients_it_is_plain_torch() -> None:
    config = config_of()
    model = ScannerModel(config)
    model.use_kernels(NUMBA)
    hidden, _ = model(torch.randint(50, (2, 9)))
    model.score(hidden.flatten(0, 1)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.backbone.parameters())


# Which backend is taken


def test_chosen_on_a_cpu() -> None:
    kernels, reason = choose_backend("auto", CPU)
    assert (kernels.name, reason) == ("numba", "numba is installed")
    assert choose_backend("numba", CPU).reason == "as asked for"
    with pytest.raises(
        ValueError, match="runs on CPUs only; got the device 'mps': use backend='auto'"
    ):
        choose_backend("numba", torch.device("mps"))


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.importlib.util, "find_spec", lambda name: None)
    message = f"numba is not installed; {install_line('cpu')}"
    assert choose_backend("auto", CPU) == (TORCH_KERNELS, message)
    with pytest.raises(ImportError) as caught:
        choose_backend("numba", CPU)
    assert str(caught.value) == message


def test_numba_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spscanner_rag.mamba2.kernels.numba.kernels", None)
    kernels, reason = choose_backend("auto", CPU)
    assert kernels is TORCH_KERNELS
    assert reason.startswith("numba cannot be loaded (")


PROGRAM = """
import json, os, sys
import numba.core.caching as caching
if sys.argv[1] == "no cache":
    caching.CacheImpl._locator_classes = []
if sys.argv[1] == "one core":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch
from spscanner_rag import Scanner
threads = None if sys.argv[1] == "one core" else 2
scanner = Scanner.from_pretrained(
    sys.argv[2], dtype="float32", backend="numba", threads=threads
)
assert torch.get_num_threads() == (threads or 1)
text = "He signed the treaty. It rained. " * 50
print(json.dumps(scanner.scan("Who signed it?", text).logits.tolist()))
"""
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def logits_in_a_process(
    checkpoint: Path, machine: str, environment: dict[str, str]
) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, machine, str(checkpoint)],
        check=True,
        capture_output=True,
        env=os.environ | environment,
    )
    logits: list[float] = json.loads(done.stdout)
    return logits


@pytest.fixture(scope="module")
def usual_logits(tiny_checkpoint: Path) -> list[float]:
    """Logits of a process in which nothing is missing."""
    return logits_in_a_process(tiny_checkpoint, "usual", {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "environment"),
    [
        ("no cache", {}),  # neither the package's folder nor the user's is writable
        ("no AVX", GENERIC),
        pytest.param(
            "one core",
            {},
            marks=pytest.mark.skipif(
                not hasattr(os, "sched_setaffinity"), reason="no affinity"
            ),
        ),
    ],
)
def test_a_machine_that_lacks_something(
    tiny_checkpoint: Path,
    usual_logits: list[float],
    machine: str,
    environment: dict[str, str],
) -> None:
    logits = logits_in_a_process(tiny_checkpoint, machine, environment)
    np.testing.assert_allclose(logits, usual_logits, atol=1e-4, rtol=0)
    assert np.ptp(logits) > 1e-3
    if not environment:
        assert logits == usual_logits
