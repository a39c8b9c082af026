"""The CUDA kernels on a GPU, else in Triton's interpreter.

``TRITON_INTERPRET=1 pytest -m cuda_interpret`` runs them there.

The interpreter takes tens of milliseconds for each block of a kernel, so there inputs
are prefixes of the oracles (the model is causal) and chunks are small.
"""

import copy
import dataclasses
import importlib.util
import json
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from spscanner_rag.checkpoint import load_model
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import (
    TORCH_KERNELS,
    GatedRMSNorm,
    Kernels,
    ScanOperands,
)
from spscanner_rag.mamba2.model import ScannerModel, ScanState
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.scanner import Scanner
from tests.conftest import SMALL_TEXT


def _reason() -> str | None:
    missing = [
        name
        for name in ("triton", "mamba_ssm", "einops")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        return (
            f"{', '.join(missing)} not installed: see cuda-interpret in CONTRIBUTING.md"
        )
    if os.environ.get("TRITON_INTERPRET") != "1" and DEVICE == "cpu":
        return "set TRITON_INTERPRET=1 to run Triton's kernels on the CPU"
    return None


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


pytestmark = [
    pytest.mark.cuda_interpret,
    pytest.mark.skipif(_reason() is not None, reason=_reason() or ""),
]

TOLERANCE = 1e-4
# of logits whose standard deviation is 0.55; in plain torch 0.008
BFLOAT16_TOLERANCE = 0.02
TOKENS = 18 if DEVICE == "cpu" else 700  # in the interpreter, a chunk and two tokens


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return choose_backend("mamba-ssm", torch.device(DEVICE)).kernels


@pytest.fixture(autouse=True)
def _on_the_device() -> Iterator[None]:
    with torch.device(DEVICE):
        yield


@pytest.fixture
def bfloat16(monkeypatch: pytest.MonkeyPatch) -> torch.dtype:
    """The dtype, with an interpreter that multiplies it correctly.

    As it comes it multiplies the bits, as if they were integers:
    https://github.com/triton-lang/triton/issues/11584.
    """
    if DEVICE == "cuda":
        return torch.bfloat16
    from triton import language
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def as_float32(handle: Any) -> Any:
        if handle.dtype.scalar != language.bfloat16:
            return handle
        return TensorHandle(
            (handle.data.astype(np.uint32) << 16).view(np.float32), language.float32
        )

    def create_dot(builder: Any, a: Any, b: Any, *others: Any) -> Any:
        return of_bits(builder, as_float32(a), as_float32(b), *others)

    of_bits = InterpreterBuilder.create_dot
    monkeypatch.setattr(InterpreterBuilder, "create_dot", create_dot)
    return torch.bfloat16


def small_chunks(model: ScannerModel, kernels: Kernels) -> ScannerModel:
    """With chunks of 16 tokens, so that few tokens make several chunks."""
    config = dataclasses.replace(model.config, chunk_size=16)
    for layer in model.backbone.layers:
        layer.mixer.config = config
    model.use_kernels(kernels)
    return model


@torch.inference_mode()
def read(
    model: ScannerModel, ids: Tensor, segment_tokens: int
) -> tuple[Tensor, ScanState]:
    """Logits of all tokens, (batch, tokens), and the final state."""
    state, parts = None, []
    for segment in torch.split(ids, segment_tokens, dim=1):
        hidden, state = model(segment, state)
        parts.append(model.score(hidden.flatten(0, 1)).view(segment.shape))
    assert state is not None
    return torch.cat(parts, dim=1), state


def oracle(
    folder: Path, name: str, kernels: Kernels, dtype: torch.dtype = torch.float32
) -> tuple[ScannerModel, Tensor, Tensor]:
    """A model of the original, token ids and the original's logits: (1, TOKENS)."""
    expected = load_file(
        folder / "checkpoints" / name / "expected.safetensors", device=DEVICE
    )
    model = small_chunks(
        load_model(folder / "checkpoints" / name, device=DEVICE, dtype=dtype), kernels
    )
    return model, expected["input_ids"][:1, :TOKENS], expected["logits"][:1, :TOKENS]


# Against the original


@pytest.mark.parametrize(
    ("name", "segment_tokens"),
    [("two-groups", TOKENS), ("two-groups", 7), ("long", 11)],
)
def test_oracle(
    committed_oracles: Path, kernels: Kernels, name: str, segment_tokens: int
) -> None:
    model, ids, expected = oracle(committed_oracles, name, kernels)
    logits, state = read(model, ids, segment_tokens)
    assert (logits - expected).abs().max() <= TOLERANCE
    model.use_kernels(TORCH_KERNELS)
    _, of_torch = read(model, ids, TOKENS)
    for got, wanted in zip(state, of_torch, strict=True):
        torch.testing.assert_close(got.conv, wanted.conv, atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(got.ssm, wanted.ssm, atol=TOLERANCE, rtol=TOLERANCE)
        assert got.ssm.dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "segment_tokens"), [("two-groups", TOKENS), ("long", 7)]
)
def test_oracle_in_bfloat16(
    committed_oracles: Path,
    kernels: Kernels,
    bfloat16: torch.dtype,
    name: str,
    segment_tokens: int,
) -> None:
    model, ids, expected = oracle(committed_oracles, name, kernels, bfloat16)
    logits, state = read(model, ids, segment_tokens)
    assert TOLERANCE < (logits - expected).abs().max() <= BFLOAT16_TOLERANCE
    for layer in state:
        assert (layer.conv.dtype, layer.ssm.dtype) == (bfloat16, torch.float32)


@pytest.mark.parametrize("segment_tokens", [1000, 6])
def test_packed_sequences_are_apart(
    committed_oracles: Path, kernels: Kernels, segment_tokens: int
) -> None:
    # prefixes of the oracle, one after the other in one row, cut at arbitrary tokens
    model, ids, expected = oracle(committed_oracles, "two-groups", kernels)
    # steps of 6: lengths end inside, at and just after a step
    lengths = [
        0,
        5,
        1,
        8,
        2,
        1,
        0,
    ]
    sequences = [
        TokenSequence(ids[0, :n].cpu().numpy().astype(np.int32), np.arange(n))
        for n in lengths
    ]
    steps: list[int] = []
    results = read_logits(model, sequences, segment_tokens, steps.append)
    assert [len(logits) for logits in results] == lengths
    assert sum(steps) == sum(lengths)
    assert max(steps) <= segment_tokens
    for logits, n in zip(results, lengths, strict=True):
        np.testing.assert_allclose(
            logits, expected[0, :n].cpu(), atol=TOLERANCE, rtol=0
        )


# Part by part, against torch


def operands(*, wide_skip: bool = False) -> tuple[ScanOperands, Tensor]:
    random = torch.Generator(DEVICE).manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    tokens, heads, headdim, groups, d_state = 18, 2, 8, 2, 16
    return ScanOperands(
        normal(1, tokens, heads, headdim),
        normal(1, tokens, heads),
        normal(heads),
        -torch.exp(normal(heads)),
        normal(1, tokens, groups, d_state),
        normal(1, tokens, groups, d_state),
        normal(heads, headdim) if wide_skip else normal(heads),
    ), normal(1, heads, headdim, d_state)


@pytest.mark.parametrize(
    ("changes", "wide_skip"),
    [
        ({}, False),
        ({"dt_limit": (0.1, 0.5)}, False),
        ({}, True),
        ({"chunk_size": 48}, False),
    ],
)
def test_scan(
    committed_oracles: Path,
    kernels: Kernels,
    changes: dict[str, object],
    wide_skip: bool,
) -> None:
    config = load_model(committed_oracles / "checkpoints" / "two-groups").config
    config = dataclasses.replace(config, **{"chunk_size": 16, **changes})  # type: ignore[arg-type]
    inputs, state = operands(wide_skip=wide_skip)
    got = kernels.scan(inputs, state, config, None)
    wanted = TORCH_KERNELS.scan(inputs, state, config, None)
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("d_conv", "with_bias"), [(4, True), (2, False), (1, True)])
def test_convolution_and_what_it_carries(
    kernels: Kernels, d_conv: int, with_bias: bool
) -> None:
    conv1d = torch.nn.Conv1d(6, 6, d_conv, groups=6, bias=with_bias).requires_grad_(
        False
    )
    projected = torch.randn(2, 35, 9)
    # a part of a projection, as in the mixer
    whole, tail = (
        projected[..., 2:8],
        torch.randn(2, d_conv - 1, 6),
    )
    wanted, wanted_tail = TORCH_KERNELS.convolve(conv1d, whole, tail, None)
    parts = []
    for part in torch.split(whole, [1, 2, 32], dim=1):
        out, tail = kernels.convolve(conv1d, part, tail, None)
        parts.append(out)
    torch.testing.assert_close(torch.cat(parts, dim=1), wanted)
    torch.testing.assert_close(tail, wanted_tail)


def test_convolution_keeps_sequences_apart(kernels: Kernels) -> None:
    conv1d = torch.nn.Conv1d(5, 5, 4, groups=5).requires_grad_(False)
    inputs, tail = torch.randn(1, 9, 5), torch.randn(1, 3, 5)
    index = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 3, 3]], dtype=torch.int32)
    out, after = kernels.convolve(conv1d, inputs, tail, index)
    zeros = torch.zeros_like(tail)
    for start, stop, before in ((0, 2, tail), (2, 7, zeros), (7, 9, zeros)):
        wanted, wanted_after = TORCH_KERNELS.convolve(
            conv1d, inputs[:, start:stop], before, None
        )
        torch.testing.assert_close(out[:, start:stop], wanted)
    torch.testing.assert_close(after, wanted_after)


@pytest.mark.parametrize("norm_before_gate", [False, True])
def test_gated_norm(
    committed_oracles: Path, kernels: Kernels, norm_before_gate: bool
) -> None:
    config = load_model(committed_oracles / "checkpoints" / "two-groups").config
    norm = GatedRMSNorm(
        dataclasses.replace(config, norm_before_gate=norm_before_gate, norm_epsilon=0.1)
    )
    torch.nn.init.normal_(norm.weight)
    norm.requires_grad_(False)
    y, z = (
        torch.randn(1, 4, config.d_inner),
        torch.randn(1, 4, 2 * config.d_inner)[..., : config.d_inner],
    )
    torch.testing.assert_close(
        kernels.gated_norm(norm, y, z), norm(y, z), atol=1e-5, rtol=1e-5
    )
    assert kernels.gated_norm(norm, y[0, :0], z[0, :0]).shape == (0, config.d_inner)


# Loading


def test_nothing_of_mamba_ssm_is_left_behind(kernels: Kernels) -> None:
    assert not [
        name
        for name in sys.modules
        if name.split(".")[0] in ("mamba_ssm", "selective_scan_cuda")
    ]


def test_copies_load_their_own(kernels: Kernels) -> None:
    for again in (pickle.loads(pickle.dumps(kernels)), copy.deepcopy(kernels)):
        assert again.name == "mamba-ssm"
        assert again is not kernels


def test_float32_products_are_not_rounded_to_tf32(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    import triton

    from spscanner_rag.mamba2.kernels.triton import kernels as triton_kernels

    seen = []

    def scan(*_: object, **__: object) -> tuple[None, None]:
        seen.append(triton.knobs.language.fp32_default)
        return None, None

    fake = triton_kernels.MambaKernels(
        triton_kernels.load_operators()._replace(mamba_chunk_scan_combined=scan)
    )
    inputs, state = operands()
    fake.scan(
        inputs,
        state,
        Mamba2Config(d_model=16, n_layer=1, vocab_size=8, headdim=8),
        None,
    )
    assert seen == ["ieee"]
    # the default of other kernels in the process
    assert triton.knobs.language.fp32_default != "ieee"


# Whole scanners


def on_the_device(folder: Path, **options: Any) -> Scanner:
    return Scanner.from_pretrained(
        folder, device=DEVICE, dtype="float32", backend="mamba-ssm", **options
    )


def on_a_cpu(folder: Path, **options: Any) -> Scanner:
    return Scanner.from_pretrained(
        folder, device="cpu", dtype="float32", backend="torch", **options
    )


def test_scanner(tiny_checkpoint: Path) -> None:
    pairs = [("Who?", "He left."), ("Why?", "It rained.")]
    scanner = on_the_device(tiny_checkpoint, segment_tokens=16)
    assert (scanner.backend, scanner.backend_reason) == ("mamba-ssm", "as asked for")
    wanted = on_a_cpu(tiny_checkpoint).scan_many(pairs)
    for got, want in zip(scanner.scan_many(pairs), wanted, strict=True):
        np.testing.assert_allclose(got.logits, want.logits, atol=TOLERANCE, rtol=0)


def test_reference_units_and_windows(windowed_checkpoint: Path) -> None:
    options = {"window_tokens": 40, "local_files_only": True}
    text = SMALL_TEXT[:300] if DEVICE == "cpu" else SMALL_TEXT * 20
    got = on_the_device(windowed_checkpoint, **options).scan("Who signed it?", text)
    wanted = on_a_cpu(windowed_checkpoint, **options).scan("Who signed it?", text)
    assert len(got.logits) >= 2
    np.testing.assert_allclose(got.logits, wanted.logits, atol=TOLERANCE, rtol=0)


@pytest.mark.skipif(
    DEVICE == "cpu", reason="thousands of tokens take the interpreter hours"
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_end_to_end_as_the_original(oracles: Path, dtype: str) -> None:
    expected = json.loads((oracles / "end_to_end.json").read_text())
    text = json.loads((oracles / "segmentation" / expected["document"]).read_text())[
        "text"
    ]
    folder, tokenizer = (
        oracles / "checkpoints" / "tiny-neox-vocab",
        oracles / "tokenizer" / "gpt-neox-20b.json",
    )
    options: dict[str, Any] = {
        "tokenizer": tokenizer,
        "device": "cuda",
        "backend": "mamba-ssm",
    }
    logits = (
        Scanner.from_pretrained(folder, dtype=dtype, **options)
        .scan(expected["question"], text)
        .logits
    )
    wanted = np.array(expected["logits"])
    if dtype == "float32":
        np.testing.assert_allclose(logits, wanted, atol=TOLERANCE, rtol=0)
    best, wanted_best = (
        set(np.argsort(-values)[:50].tolist()) for values in (logits, wanted)
    )
    assert len(best & wanted_best) >= 45
