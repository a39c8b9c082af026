from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch._dynamo.utils import counters

from spscanner_rag.lab.training import stream
from spscanner_rag.lab.training.passes import compile_layers
from spscanner_rag.lab.training.stream import stream_states
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import SOFT_FEATURES, ScannerModel

Ids = Sequence[NDArray[np.int64]]


def new_model(d_conv: int = 4, soft: bool = False) -> ScannerModel:
    torch.manual_seed(0)
    config = Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8, d_conv=d_conv)
    model = ScannerModel(
        config, match_embedding=soft, lexical_prior=soft, surroundings=soft, soft=soft, head=False
    )
    torch.nn.init.normal_(model.backbone.embedding.weight)
    return model.train()


def sequences(lengths: Sequence[int]) -> Ids:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 61, length) for length in lengths]


def one_by_one(model: ScannerModel, ids: Ids) -> list[Tensor]:
    return [model(torch.from_numpy(row)[None])[0][0] for row in ids]


def in_a_stream(model: ScannerModel, ids: Ids) -> list[Tensor]:
    return stream_states(model, ids, None, None, torch.float32)


def gradients(
    model: ScannerModel, ids: Ids, read: Callable[[ScannerModel, Ids], list[Tensor]]
) -> dict[str, Tensor]:
    """Of a loss to which every hidden state contributes differently."""
    model.zero_grad()
    random = torch.Generator().manual_seed(1)
    loss = sum((states * torch.randn(states.shape, generator=random)).sum() for states in read(model, ids))
    assert isinstance(loss, Tensor)
    loss.backward()  # type: ignore[no-untyped-call]
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-3, msg=name)


@settings(max_examples=8)
@given(lengths=st.lists(st.integers(1, 150), min_size=1, max_size=4), d_conv=st.integers(2, 4))
def test_states_and_gradients_are_those_of_sequences_read_alone(lengths: list[int], d_conv: int) -> None:
    model, ids = new_model(d_conv), sequences(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "SEGMENT_TOKENS", 128)
        for states, alone in zip(in_a_stream(model, ids), one_by_one(model, ids), strict=True):
            torch.testing.assert_close(states, alone, rtol=1e-4, atol=1e-4)
        assert_same(gradients(model, ids, in_a_stream), gradients(model, ids, one_by_one))


@pytest.mark.parametrize("length", [60, 61, 62, 63, 64, 1020, 1021, 1024, 1025])
def test_nothing_of_a_sequence_reaches_the_next(length: int) -> None:
    model = new_model()
    first, second = sequences([length, 70])
    with torch.no_grad():
        _, after_one = in_a_stream(model, [first, second])
        _, after_other = in_a_stream(model, [(first + 1) % 61, second])
    torch.testing.assert_close(after_one, after_other, rtol=0, atol=0)


def test_the_lexical_channel_is_read_too() -> None:
    model, ids = new_model(soft=True), sequences([90, 30])
    draw = np.random.default_rng(1)
    classes = [draw.integers(0, 6, len(row)) for row in ids]
    features = [draw.random((len(row), SOFT_FEATURES), np.float32) for row in ids]
    with torch.no_grad():
        found = stream_states(model, ids, classes, features, torch.float32)
        for states, row, own, values in zip(found, ids, classes, features, strict=True):
            alone, _ = model(
                torch.from_numpy(row)[None],
                None,
                torch.from_numpy(own)[None],
                match_features=torch.from_numpy(values)[None],
            )
            torch.testing.assert_close(states, alone[0], rtol=1e-4, atol=1e-4)


def test_the_model_has_its_own_kernels_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = new_model()
    usual = model.kernels
    in_a_stream(model, sequences([70]))
    assert model.kernels is usual
    monkeypatch.setattr(model.backbone, "forward", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        in_a_stream(model, sequences([70]))
    assert {layer.mixer.kernels for layer in model.backbone.layers} == {usual}


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # torch hides it itself
def test_compiled_layers_are_one_graph_whatever_the_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SEGMENT_TOKENS", 128)  # fewer blocks to compile
    model = new_model()
    expected = [gradients(model, sequences(lengths), one_by_one) for lengths in ([70, 200], [5])]
    compile_layers(model)
    before = counters["stats"]["unique_graphs"]
    for lengths, of_one_by_one in zip(([70, 200], [5]), expected, strict=True):
        assert_same(gradients(model, sequences(lengths), in_a_stream), of_one_by_one)
    assert counters["stats"]["unique_graphs"] == before + 1
