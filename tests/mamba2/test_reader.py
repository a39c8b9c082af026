"""Which sequences share a step, what a step holds; logits depend on neither."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.mamba2 import backends
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS
from spscanner_rag.mamba2.model import (
    SOFT_FEATURES,
    SOFT_SCORES,
    SURROUNDINGS,
    ScannerModel,
)
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import (
    PADDING_SHARE,
    TokenSequence,
    group_by_length,
)


@pytest.fixture
def plain(models: dict[bool, ScannerModel]) -> ScannerModel:
    return models[False]


PRIOR_WIDTH = 1 + SURROUNDINGS + SOFT_SCORES


@pytest.fixture
def lexical(models: dict[bool, ScannerModel]) -> ScannerModel:
    return models[True]


def sequence(tokens: int, seed: int, *, lexical: bool = False) -> TokenSequence:
    random = np.random.default_rng([tokens, seed])
    # some positions occur twice
    positions = np.sort(random.integers(0, max(tokens, 1), min(tokens, 7)))
    return TokenSequence(
        random.integers(0, 61, tokens, dtype=np.int32),
        positions.astype(np.int64),
        random.integers(0, 7, tokens, dtype=np.uint8) if lexical else None,
        (
            random.normal(size=(len(positions), PRIOR_WIDTH)).astype(np.float32)
            if lexical
            else None
        ),
        (
            random.normal(size=(tokens, SOFT_FEATURES)).astype(np.float32)
            if lexical
            else None
        ),
    )


@torch.inference_mode()
def read_alone(model: ScannerModel, one: TokenSequence) -> NDArray[np.float32]:
    """One pass over one sequence, without the reader."""
    if not len(one.input_ids):
        return np.empty(0, np.float32)
    ids = torch.from_numpy(one.input_ids.astype(np.int64))[None]
    classes = (
        None
        if one.match_classes is None
        else torch.from_numpy(one.match_classes.astype(np.int64))[None]
    )
    features = (
        None
        if one.match_features is None
        else torch.from_numpy(one.match_features)[None]
    )
    hidden, _ = model(ids, match_classes=classes, match_features=features)
    prior = None if one.prior is None else torch.from_numpy(one.prior)
    logits: NDArray[np.float32] = model.score(
        hidden[0, torch.from_numpy(one.positions)], prior
    ).numpy()
    return logits


LENGTHS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 3000)), max_size=40)


@settings(max_examples=100)
@given(LENGTHS, st.integers(1, 5000))
@example([], 1)
@example([0, 0, 0], 1)
@example([8, 7], 16)
@example([8, 6], 16)
@example([90, 10, 100, 95], 1000)
def test_groups(lengths: list[int], segment_tokens: int) -> None:
    groups = group_by_length(lengths, segment_tokens)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    order = [lengths[i] for group in groups for i in group]
    assert order == sorted(lengths, reverse=True)
    for group in groups:
        assert group
        step = len(group) * lengths[group[0]]
        padding = step - sum(lengths[i] for i in group)
        if len(group) > 1:
            assert step <= segment_tokens
            assert padding <= PADDING_SHARE * step
    # no group is smaller than necessary
    for group, following in itertools.pairwise(groups):
        joined = [lengths[i] for i in (*group, following[0])]
        step = len(joined) * joined[0]
        assert step > segment_tokens or step - sum(joined) > PADDING_SHARE * step


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 60), max_size=6),
    st.sampled_from([7, 16, 64, 300, 10_000]),
    st.booleans(),
)
@example([12, 3, 12, 0], 1, True)
@example([0], 64, False)
@example([0, 0, 30], 64, True)
@example([30, 30, 29, 28], 10_000, True)
@example([], 7, False)
@example([7, 7, 7], 7, True)  # every end is the end of a step
def test_logits_do_not_depend_on_what_else_is_read(
    models: dict[bool, ScannerModel],
    lengths: list[int],
    segment_tokens: int,
    with_channel: bool,
) -> None:
    pytest.importorskip("numba")
    model = models[with_channel]
    sequences = [
        sequence(tokens, seed, lexical=with_channel)
        for seed, tokens in enumerate(lengths)
    ]
    expected = [read_alone(model, one) for one in sequences]
    # in rows, padded, and one after the other in one row
    for backend in (
        "torch",
        "numba",
    ):
        steps: list[int] = []
        model.use_kernels(backends.choose_backend(backend, torch.device("cpu")).kernels)
        try:
            results = read_logits(model, sequences, segment_tokens, steps.append)
        finally:
            model.use_kernels(TORCH_KERNELS)
        assert sum(steps) == sum(lengths)
        assert all(0 < tokens <= max(segment_tokens, len(lengths)) for tokens in steps)
        assert backend == "torch" or all(
            tokens == segment_tokens for tokens in steps[:-1]
        )
        for got, wanted in zip(results, expected, strict=True):
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "tokens", [[1000], [400, 400, 390], [1000, 30, 30, 7, 0], [10] * 50]
)
@pytest.mark.parametrize("segment_tokens", [1, 64, 1000])
def test_steps_are_within_segment_tokens(
    tokens: list[int], segment_tokens: int, plain: ScannerModel
) -> None:
    if segment_tokens == 1:
        tokens = [n // 10 for n in tokens]
    sizes: list[int] = []

    def watch(module: object, args: tuple[torch.Tensor, ...]) -> None:
        sizes.append(args[0].numel())

    handle = plain.backbone.embedding.register_forward_pre_hook(watch)
    read_logits(plain, [sequence(n, 0) for n in tokens], segment_tokens)
    handle.remove()
    assert max(sizes) <= segment_tokens
    assert sum(sizes) <= sum(tokens) / (1 - PADDING_SHARE) + 1


def test_one_row_per_sequence_where_kernels_do_not_pack(
    models: dict[bool, ScannerModel],
) -> None:
    ids = torch.zeros(1, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="the torch kernels read one sequence per row"):
        models[False](ids, sequence_index=torch.tensor([[0, 0, 1]], dtype=torch.int32))


def test_last_layer_works_for_the_asked_positions_alone(
    models: dict[bool, ScannerModel],
) -> None:
    model = ScannerModel(dataclasses.replace(models[False].config, n_layer=3)).eval()
    rows, tokens = torch.tensor([1, 0, 0, 1]), torch.tensor([8, 0, 3, 8])
    ids = torch.randint(61, (2, 9))
    sizes: dict[int, int] = {}
    for number, layer in enumerate(model.backbone.layers):
        layer.mixer.out_proj.register_forward_pre_hook(
            lambda module, args, number=number: sizes.__setitem__(
                number, args[0].numel()
            )
        )
    with torch.inference_mode():
        hidden, state = model(
            ids[:, 4:], model(ids[:, :4])[1], at=(rows, tokens.clamp(max=4))
        )
        assert list(sizes.values()) == [2 * 5 * 32, 2 * 5 * 32, 4 * 32]
        whole, whole_state = model(ids[:, 4:], model(ids[:, :4])[1])
        none, _ = model(ids, at=(rows[:0], tokens[:0]))
    torch.testing.assert_close(
        hidden, whole[rows, tokens.clamp(max=4)], atol=1e-6, rtol=0
    )
    for got, wanted in zip(state, whole_state, strict=True):
        assert torch.equal(got.conv, wanted.conv)
        assert torch.equal(got.ssm, wanted.ssm)
    assert none.shape == (0, 16)
