"""Gradients of the numba kernels, against those of plain torch."""

from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import ScanOperands
from spscanner_rag.mamba2.model import ScannerModel

numba_gradients = pytest.importorskip("spscanner_lab.training.kernels.gradients")
pytestmark = pytest.mark.slow  # kernels are compiled for each dtype and shape

NUMBA = numba_gradients.NumbaTrainingKernels()
TOLERANCE = 1e-4  # relative to the largest number of a gradient
TOKENS = 71

SHAPES = [
    {},
    {"d_state": 5},
    {"headdim": 64, "d_state": 64, "d_model": 64},
    {"headdim": 32, "d_state": 16, "ngroups": 2, "D_has_hdim": True},
    {"dt_limit": (0.05, 0.5), "norm_before_gate": True},
    {"rmsnorm": False, "conv_bias": False},
]


@pytest.fixture
def threads() -> Iterator[None]:
    """With several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def config_of(**others: object) -> Mamba2Config:
    return Mamba2Config(
        **{"d_model": 32, "n_layer": 2, "vocab_size": 50, "headdim": 8} | others
    )


def close(got: Tensor, expected: Tensor, name: str) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
    if not expected.numel():  # a convolution with one tap has an empty tail
        return
    most = expected.float().abs().max().item()
    error = (got.float() - expected.float()).abs().max().item()
    assert error <= TOLERANCE * max(most, 1e-3), f"{name}: {error} of {most}"


def outputs_and_gradients(
    step: Callable[..., Sequence[Tensor]],
    inputs: dict[str, Tensor],
    weights: nn.Module | None = None,
) -> dict[str, Tensor]:
    """The results of a step, and the gradients of a sum of them.

    Each number contributes to the sum differently.
    """
    leaves = {
        name: value.detach().clone().requires_grad_() for name, value in inputs.items()
    }
    results = step(**leaves)
    random = torch.Generator().manual_seed(1)
    loss = sum(
        (out.float() * torch.randn(out.shape, generator=random)).sum()
        for out in results
    )
    assert isinstance(loss, Tensor)
    if weights is not None:
        weights.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    found = {f"result {number}": out.detach() for number, out in enumerate(results)}
    found |= {
        f"gradient of {name}": leaf.grad
        for name, leaf in leaves.items()
        if leaf.grad is not None
    }
    if weights is not None:
        found |= {
            f"gradient of {n}": p.grad.clone()
            for n, p in weights.named_parameters()
            if p.grad is not None
        }
    return found


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        close(found[name], value, name)


# The operator against its definition


def recurrence(
    dt: Tensor, decay: Tensor, x: Tensor, B: Tensor, C: Tensor, D: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The operator by its definition, for one row, token by token."""
    heads = x.shape[1]
    out = []
    for t in range(len(x)):
        rows, columns = (
            part[t].repeat_interleave(heads // part.shape[1], 0) for part in (B, C)
        )
        state = decay[t, :, None, None] * state + torch.einsum(
            "h,hp,hn->hpn", dt[t], x[t], rows
        )
        out.append(
            torch.einsum("hpn,hn->hp", state, columns) + D.reshape(heads, -1) * x[t]
        )
    return torch.stack(out), state


def scan_inputs(config: Mamba2Config, tokens: int, rate: float) -> dict[str, Tensor]:
    heads, groups = config.nheads, config.ngroups
    return {
        "x": torch.randn(1, tokens, heads, config.headdim),
        "dt": torch.randn(1, tokens, heads),
        "A": -torch.rand(heads) * rate,
        "B": torch.randn(1, tokens, groups, config.d_state),
        "C": torch.randn(1, tokens, groups, config.d_state),
        "D": (
            torch.randn(heads, config.headdim)
            if config.D_has_hdim
            else torch.randn(heads)
        ),
        "state": torch.randn(1, heads, config.headdim, config.d_state),
    }


@pytest.mark.parametrize("rate", [0.0, 1e-4, 2.0, 100.0])
@pytest.mark.parametrize("starts", [(), (3, 63, 65)])
@pytest.mark.parametrize("others", SHAPES[:4])
@pytest.mark.usefixtures("threads")
def test_scan(others: dict[str, object], starts: tuple[int, ...], rate: float) -> None:
    """Against the recurrence in float64, from decays that forget nothing to all."""
    torch.manual_seed(0)
    config, tokens = config_of(**others), TOKENS
    inputs = scan_inputs(config, tokens, rate)
    numbers = torch.zeros(1, tokens, dtype=torch.int32)
    for start in starts:
        numbers[:, start:] += 1

    def by_numba(
        x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, state: Tensor
    ) -> Sequence[Tensor]:
        operands = ScanOperands(x, dt, torch.zeros(config.nheads), A, B, C, D)
        return NUMBA.scan(operands, state, config, numbers)

    def exactly(
        x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, state: Tensor
    ) -> Sequence[Tensor]:
        steps = nn.functional.softplus(dt[0].double())
        decay = torch.exp(steps * A.double())
        decay = decay * torch.tensor([t not in starts for t in range(tokens)])[:, None]
        operands = (part[0].double() for part in (x, B, C))
        y, after = recurrence(steps, decay, *operands, D.double(), state[0].double())
        return y[None].float(), after[None].float()

    found, expected = (
        outputs_and_gradients(by_numba, inputs),
        outputs_and_gradients(exactly, inputs),
    )
    if rate > 10:
        # if a state is forgotten at once, the gradient of A is near 0: it is the
        # difference of larger numbers
        got, wanted = (
            gradients.pop("gradient of A") for gradients in (found, expected)
        )
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-3)
    same(found, expected)


# The whole model


def model_of(**others: object) -> ScannerModel:
    torch.manual_seed(0)
    model = ScannerModel(config_of(**others), head=False)
    nn.init.normal_(model.backbone.embedding.weight)
    return model.train()


@pytest.mark.parametrize("others", SHAPES)
def test_a_model_has_the_gradients_of_torch(others: dict[str, object]) -> None:
    model = model_of(**others)
    ids = torch.randint(0, 50, (2, TOKENS))
    expected = outputs_and_gradients(lambda: (model(ids)[0],), {}, model)
    model.use_kernels(NUMBA)
    same(outputs_and_gradients(lambda: (model(ids)[0],), {}, model), expected)
    with torch.no_grad():  # the kernels for reading
        close(model(ids)[0], expected["result 0"], "hidden states")


@settings(max_examples=10)
@given(
    lengths=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    d_conv=st.integers(2, 4),
)
def test_packed_sequences_have_the_gradients_of_sequences_read_alone(
    lengths: list[int], d_conv: int
) -> None:
    model = model_of(d_conv=d_conv)
    ids = [torch.randint(0, 50, (length,)) for length in lengths]
    numbers = torch.arange(len(ids), dtype=torch.int32).repeat_interleave(
        torch.tensor(lengths)
    )
    expected = outputs_and_gradients(
        lambda: (torch.cat([model(row[None])[0][0] for row in ids]),), {}, model
    )
    model.use_kernels(NUMBA)
    packed = outputs_and_gradients(
        lambda: (model(torch.cat(ids)[None], sequence_index=numbers[None])[0][0],),
        {},
        model,
    )
    same(packed, expected)


def test_gradients_pass_from_segment_to_segment() -> None:
    model = model_of()
    model.use_kernels(NUMBA)
    ids = torch.randint(0, 50, (1, 150))

    def in_segments() -> Sequence[Tensor]:
        first, state = model(ids[:, :70])
        return (torch.cat((first, model(ids[:, 70:], state)[0]), dim=1),)

    expected = outputs_and_gradients(lambda: (model(ids)[0],), {}, model)
    same(outputs_and_gradients(in_segments, {}, model), expected)


def test_products_in_bfloat16() -> None:
    """As close to float32 as plain torch in bfloat16, or at most half as far again."""
    model = model_of()
    ids = torch.randint(0, 50, (2, 100))

    def read() -> Sequence[Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            return (model(ids)[0],)

    def distance(found: dict[str, Tensor]) -> Tensor:
        errors = [
            ((found[name] - value).norm() / value.norm())
            for name, value in exact.items()
        ]
        return torch.stack(errors).mean()

    rounded = False
    exact = outputs_and_gradients(read, {}, model)
    rounded = True
    by_torch = distance(outputs_and_gradients(read, {}, model))
    model.use_kernels(NUMBA)
    by_numba = distance(outputs_and_gradients(read, {}, model))
    assert 0 < by_numba < 1.5 * by_torch < 0.1
