"""Sequences one behind the other in one row, with kernels of plain torch that take rows apart."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor, nn

from spscanner_rag.checkpoint import load_model
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels import TORCH_KERNELS, ScanOperands, TorchKernels
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence, read_logits


class Packing(TorchKernels):
    """Every sequence of the one row by itself, from the state or from zeros."""

    packs = True

    def convolve(
        self, conv1d: nn.Conv1d, xBC: Tensor, tail: Tensor, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        parts = []
        for tokens, carried in runs(sequence_index, xBC.shape[1]):
            out, after = super().convolve(conv1d, xBC[:, tokens], tail if carried else tail * 0, None)
            parts.append(out)
        return torch.cat(parts, dim=1), after

    def scan(
        self, operands: ScanOperands, state: Tensor, config: Mamba2Config, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        parts = []
        for tokens, carried in runs(sequence_index, operands.x.shape[1]):
            own = operands._replace(
                **{name: getattr(operands, name)[:, tokens] for name in ("x", "dt", "B", "C")}
            )
            y, after = super().scan(own, state if carried else state * 0, config, None)
            parts.append(y)
        return torch.cat(parts, dim=1), after


def runs(index: Tensor | None, tokens: int) -> list[tuple[slice, bool]]:
    """Where each sequence of the row is, and whether it goes on from the state."""
    if index is None:
        return [(slice(0, tokens), True)]
    assert index.dtype == torch.int32
    assert index.shape == (1, tokens)
    numbers, counts = torch.unique_consecutive(index[0], return_counts=True)
    assert (numbers.diff() > 0).all()
    ends = counts.cumsum(0).tolist()
    starts = [0, *ends[:-1]]
    return [(slice(a, b), n == 0) for a, b, n in zip(starts, ends, numbers.tolist(), strict=True)]


def sequence(tokens: int, seed: int, *, lexical: bool) -> TokenSequence:
    random = np.random.default_rng([tokens, seed])
    positions = np.sort(random.integers(0, max(tokens, 1), min(tokens, 5))).astype(np.int64)
    return TokenSequence(
        random.integers(0, 61, tokens, dtype=np.int32),
        positions,
        random.integers(0, 7, tokens, dtype=np.uint8) if lexical else None,
        random.normal(size=(len(positions), 4)).astype(np.float32) if lexical else None,
    )


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=6), st.sampled_from([1, 7, 16, 64, 1000]), st.booleans())
@example([], 7, False)
@example([0, 0], 7, True)
@example([7, 7, 7], 7, True)  # every end is the end of a step
@example([6, 2, 0, 20], 7, False)
def test_equals_each_alone(
    models: dict[bool, ScannerModel], lengths: list[int], segment_tokens: int, with_channel: bool
) -> None:
    model = models[with_channel]
    sequences = [sequence(tokens, seed, lexical=with_channel) for seed, tokens in enumerate(lengths)]
    steps: list[int] = []
    expected = [read_logits(model, [one], 1000)[0] for one in sequences]
    model.use_kernels(Packing())
    try:
        results = read_logits(model, sequences, segment_tokens, steps.append)
    finally:
        model.use_kernels(TORCH_KERNELS)
    assert len(results) == len(sequences)
    for got, wanted in zip(results, expected, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=1e-4, rtol=0)
    assert sum(steps) == sum(lengths)
    assert all(step == segment_tokens for step in steps[:-1])


def test_oracle(committed_oracles: Path) -> None:
    folder = committed_oracles / "checkpoints" / "two-groups"
    expected = load_file(folder / "expected.safetensors")
    model = load_model(folder)
    model.use_kernels(Packing())
    ids = expected["input_ids"].numpy().astype(np.int32)
    logits = read_logits(model, [TokenSequence(row, np.arange(len(row))) for row in ids], 300)
    assert np.abs(np.stack(logits) - expected["logits"].numpy()).max() <= 1e-4


def test_one_row_per_sequence_where_kernels_do_not_pack(models: dict[bool, ScannerModel]) -> None:
    ids = torch.zeros(1, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="the torch kernels read one sequence per row"):
        models[False](ids, sequence_index=torch.tensor([[0, 0, 1]], dtype=torch.int32))


def test_last_layer_works_for_the_asked_positions_alone(models: dict[bool, ScannerModel]) -> None:
    model = ScannerModel(dataclasses.replace(models[False].config, n_layer=3)).eval()
    rows, tokens = torch.tensor([1, 0, 0, 1]), torch.tensor([8, 0, 3, 8])
    ids = torch.randint(61, (2, 9))
    sizes: dict[int, int] = {}
    for number, layer in enumerate(model.backbone.layers):
        layer.mixer.out_proj.register_forward_pre_hook(
            lambda module, args, number=number: sizes.__setitem__(number, args[0].numel())
        )
    with torch.inference_mode():
        hidden, state = model(ids[:, 4:], model(ids[:, :4])[1], at=(rows, tokens.clamp(max=4)))
        assert list(sizes.values()) == [2 * 5 * 32, 2 * 5 * 32, 4 * 32]
        whole, whole_state = model(ids[:, 4:], model(ids[:, :4])[1])
        none, _ = model(ids, at=(rows[:0], tokens[:0]))
    torch.testing.assert_close(hidden, whole[rows, tokens.clamp(max=4)], atol=1e-6, rtol=0)
    for got, wanted in zip(state.layers, whole_state.layers, strict=True):
        assert torch.equal(got.conv, wanted.conv)
        assert torch.equal(got.ssm, wanted.ssm)
    assert none.shape == (0, 16)
