import pytest
import torch
from torch.nn import functional as F

from spscanner_rag.lab.training.stages import next_token_loss as module
from spscanner_rag.lab.training.stages.next_token_loss import next_token_loss


def tensors() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    hidden = torch.randn(23, 8, requires_grad=True)
    embedding = torch.randn(40, 8, requires_grad=True)
    return hidden, embedding, torch.randint(40, (23,))


@pytest.mark.parametrize("logits_at_once", [1, 40 * 5, 10**6])
def test_loss_and_gradients_are_those_of_cross_entropy(
    logits_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.SLICE_LOGITS, "cpu", logits_at_once)
    hidden, embedding, targets = tensors()
    loss = next_token_loss(hidden, embedding, targets, torch.float32)
    got = torch.autograd.grad(loss / 3, (hidden, embedding))
    expected = F.cross_entropy(hidden @ embedding.T, targets, reduction="sum")
    torch.testing.assert_close(loss, expected)
    for gradient, wanted in zip(got, torch.autograd.grad(expected / 3, (hidden, embedding)), strict=True):
        torch.testing.assert_close(gradient, wanted)


def test_bfloat16_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, embedding, targets = tensors()
    loss = next_token_loss(hidden, embedding, targets, torch.bfloat16)
    expected = next_token_loss(hidden, embedding, targets, torch.float32)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    gradient = torch.autograd.grad(loss, embedding)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, embedding)[0], rtol=0.1, atol=0.1)


def test_never_more_than_a_slice_of_logits_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SLICE_LOGITS, "cpu", 40 * 5)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    hidden, embedding, targets = tensors()
    with Watch():
        next_token_loss(hidden, embedding, targets, torch.float32).backward()
    assert largest == max(embedding.numel(), 40 * 5)


def test_without_gradients_none_are_computed() -> None:
    hidden, embedding, targets = tensors()
    with torch.no_grad():
        loss = next_token_loss(hidden, embedding, targets, torch.float32)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, F.cross_entropy(hidden @ embedding.T, targets, reduction="sum").detach())
