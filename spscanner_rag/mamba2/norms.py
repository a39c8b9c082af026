"""RMS norms of a Mamba-2 model, computed in float32 whatever the dtype of the weights."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config


class RMSNorm(nn.Module):
    """x / rms(x) * weight, computed in float32, given in the weight's dtype."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (batch, tokens, size)."""
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.epsilon).to(
            self.weight.dtype
        )


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
        y = y.float() if self.norm_before_gate else y.float() * gate
        y = F.rms_norm(
            y.view(*y.shape[:-1], self.groups, y.shape[-1] // self.groups),
            (y.shape[-1] // self.groups,),
            eps=self.epsilon,
        )
        y = y.flatten(-2) * self.weight.float()
        return (y * gate if self.norm_before_gate else y).to(z.dtype)
