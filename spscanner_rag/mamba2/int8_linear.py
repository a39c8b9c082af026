"""The two large projections of every layer in int8, for CPUs: faster there, in a quarter of the memory.

Weights are rounded once, with one scale per output channel; inputs are rounded in the forward pass, with one scale
per token. So a token's products do not depend on other tokens, and segments and padding change the results as
little as in float32. (Dettmers et al. 2022, section 3.1: vector-wise quantization, without a path for outliers.)
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from spscanner_rag.mamba2.layers import Mamba2Mixer
from spscanner_rag.mamba2.model import ScannerModel

_PROJECTIONS = ("in_proj", "out_proj")
_WEIGHTS = tuple(f".{name}.weight" for name in _PROJECTIONS)
_LARGEST = 127
"""Rounded numbers are from -127 to 127: -128 has no positive counterpart."""

_BLOCK = 512
"""Tokens per matrix product: few enough that the int32 sums are still in the processor's cache when scaled."""


class Int8Linear(nn.Module):
    """A linear layer that multiplies int8 numbers, which are loaded later, and adds in int32; no gradient."""

    weight: Tensor  # (in_features, out_features), int8
    weight_scale: Tensor  # (out_features,), float32
    bias: Tensor | None  # (out_features,), float32

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        replaced = linear.weight
        shape = (linear.in_features, linear.out_features)
        self.register_buffer("weight", replaced.new_empty(shape, dtype=torch.int8))
        self.register_buffer("weight_scale", replaced.new_empty(linear.out_features, dtype=torch.float32))
        self.register_buffer("bias", None if linear.bias is None else torch.empty_like(linear.bias))

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features), both float32. Inputs that are not finite give nan."""
        tokens = inputs.reshape(-1, inputs.shape[-1])
        outputs = tokens.new_empty(len(tokens), len(self.weight_scale))
        for block, out in zip(torch.split(tokens, _BLOCK), torch.split(outputs, _BLOCK), strict=True):
            rounded, scale = _rounded(block)
            out.copy_(torch._int_mm(rounded, self.weight)).mul_(self.weight_scale).mul_(scale)
        if self.bias is not None:
            outputs += self.bias
        return outputs.view(*inputs.shape[:-1], outputs.shape[-1])


def require_int8(device: torch.device | str) -> None:
    """Raise ValueError for a device other than the CPU, or a CPU whose sums of int8 products overflow."""
    if torch.device(device).type != "cpu":
        raise ValueError(f"dtype is 'int8', which is for the CPU, and the device {device}; use 'auto'")
    # x86 without VNNI adds pairs of products in 16 bits, which the largest ones overflow
    largest = torch.full((64, 64), _LARGEST, dtype=torch.int8)
    if not (torch._int_mm(largest, -largest) == -64 * _LARGEST**2).all():
        raise ValueError(
            "dtype is 'int8', but this processor's sums of int8 products overflow; use 'float32' or 'auto'"
        )


def use_int8_projections(model: ScannerModel) -> None:
    """Replace both projections of every layer by an `Int8Linear`, for the weights of `with_int8_projections`."""
    for module in model.modules():
        if isinstance(module, Mamba2Mixer):
            for name in _PROJECTIONS:
                setattr(module, name, Int8Linear(getattr(module, name)))


def with_int8_projections(tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Yield a model's tensors by name, each projection's weight rounded to int8 and followed by its scale."""
    for name, tensor in tensors:
        if name.endswith(_WEIGHTS):
            rounded, scale = _rounded(tensor)  # (out_features, in_features), (out_features, 1)
            yield name, rounded.T.contiguous()
            yield f"{name}_scale", scale[:, 0]
        else:
            yield name, tensor


def projection_dtype(model: ScannerModel) -> torch.dtype:
    """The dtype of the large projections' weights: int8, or the model's own."""
    return torch.int8 if any(isinstance(part, Int8Linear) for part in model.modules()) else model.dtype


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as int8, and the scale of each: (rows, numbers), (rows, 1)."""
    smallest = torch.finfo(torch.float32).tiny * _LARGEST  # so that a row of zeros is not divided by 0
    scale = rows.abs().amax(1, keepdim=True).clamp_min_(smallest).div_(_LARGEST)
    return rows.div(scale).round_().to(torch.int8), scale
