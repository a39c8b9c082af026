"""The norms of a Mamba-2 layer, which every kernel computes too."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config


class RMSNorm(nn.Module):
    """``x / rms(x) * weight``, computed in float32 and returned in the weight's dtype."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (batch, tokens, size)."""
        normed = _over_its_rms(x.float(), self.epsilon, overwrite=False)
        return normed.mul_(self.weight.float()).to(self.weight.dtype)


class GatedRMSNorm(nn.Module):
    """RMS norm with a SiLU gate, each group of ``d_inner / ngroups`` channels normed by itself."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.groups, self.epsilon = config.ngroups, config.norm_epsilon
        self.norm_before_gate = config.norm_before_gate
        self.weight = nn.Parameter(torch.ones(config.d_inner))

    def forward(self, y: Tensor, z: Tensor) -> Tensor:
        """``y``, ``z``: (batch, tokens, d_inner)."""
        gate = F.silu(z.float())
        gated = y.float() if self.norm_before_gate else gate.mul_(y)
        by_group = gated.view(*y.shape[:-1], self.groups, y.shape[-1] // self.groups)
        normed = _over_its_rms(by_group, self.epsilon, overwrite=gated is gate)
        normed = normed.view(y.shape).mul_(self.weight.float())
        return (normed.mul_(gate) if self.norm_before_gate else normed).to(z.dtype)


def _over_its_rms(x: Tensor, epsilon: float, *, overwrite: bool) -> Tensor:
    """Divide ``x`` by the root mean square of its last dimension, in place if ``overwrite`` allows it."""
    if torch.is_grad_enabled() or not x.is_cpu:
        return F.rms_norm(x, x.shape[-1:], eps=epsilon)
    # On a CPU torch's rms_norm is a series of operations, each of which allocates a tensor for its result.
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # (..., 1)
    scale = torch.rsqrt(norm.square_().div_(x.shape[-1]).add_(epsilon))
    return torch.mul(x, scale, out=x if overwrite else None)
