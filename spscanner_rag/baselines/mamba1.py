"""Mamba-1, the other backbone of the rerankers in Xu et al. 2024, in plain torch.

The selective state space of "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (Gu and Dao 2023,
section 3, algorithm 2): a time step for each channel, and a decay for each number of a channel's state. Parameter
names and numbers are those of `mamba_ssm`'s `Mamba` and of transformers' `MambaModel`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.checkpoint.config import read_config as read_mamba2_config
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.model import LayerState, Positions, Projection, first_steps

CHUNK_TOKENS = 16
"""Tokens, of all rows, whose decays and states are held at a time: more would not stay in a processor's cache."""

# From transformers' keys to mamba_ssm's, with the same defaults; those of "ssm_cfg" are the arguments of `Mamba`.
_TRANSFORMERS: Final = {
    "hidden_size": "d_model", "num_hidden_layers": "n_layer", "vocab_size": "vocab_size",
    "layer_norm_epsilon": "norm_epsilon", "residual_in_fp32": "residual_in_fp32",
}  # fmt: skip
_TRANSFORMERS_SSM: Final = {
    "state_size": "d_state", "conv_kernel": "d_conv", "expand": "expand", "time_step_rank": "dt_rank",
    "use_bias": "bias", "use_conv_bias": "conv_bias",
}  # fmt: skip
_IGNORED: Final = frozenset(  # they set initial weights or choose a kernel
    "layer dt_min dt_max dt_init dt_scale dt_init_floor use_fast_path layer_idx device dtype".split()
)


class Mamba1Mixer(nn.Module):
    """The Mamba-1 layer: projection, causal convolution, selective scan, gate, projection."""

    def __init__(self, config: "Mamba1Config") -> None:
        super().__init__()
        self.config, inner = config, config.d_inner
        self.kernels: Kernels = TORCH_KERNELS
        self.in_proj = Projection(config.d_model, 2 * inner, bias=config.bias)
        self.conv1d = nn.Conv1d(inner, inner, config.d_conv, groups=inner, bias=config.conv_bias)
        self.x_proj = Projection(inner, config.dt_rank + 2 * config.d_state, bias=False)
        self.dt_proj = nn.Linear(config.dt_rank, inner)
        nn.init.uniform_(self.dt_proj.weight, -(config.dt_rank**-0.5), config.dt_rank**-0.5)
        self.dt_proj.bias = nn.Parameter(first_steps(inner))
        self.A_log = nn.Parameter(torch.arange(1.0, config.d_state + 1).log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = Projection(inner, config.d_model, bias=config.bias)

    def forward(
        self, u: Tensor, state: LayerState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, LayerState]:
        """``u``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        config = self.config
        x, z = self.in_proj(u).chunk(2, dim=-1)
        x, conv_tail = self.kernels.convolve(self.conv1d, x, state.conv, sequence_index)
        dt, B, C = torch.split(self.x_proj(x), [config.dt_rank, config.d_state, config.d_state], dim=-1)
        weight, bias = self.dt_proj.weight.float(), self.dt_proj.bias.float()
        steps = F.softplus(F.linear(dt.float(), weight, bias).float())  # (batch, tokens, d_inner)
        starts = (
            None if sequence_index is None else sequence_index.diff(dim=1, prepend=0 * sequence_index[:, :1])
        )
        y, ssm = self._scan(x.float(), steps, B.float(), C.float(), state.ssm.flatten(1, 2), starts)
        if at is not None:
            y, z = y[at], z[at]  # (units, d_inner)
        y = y.to(z.dtype) * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm.view_as(state.ssm))

    def _scan(
        self, x: Tensor, steps: Tensor, B: Tensor, C: Tensor, state: Tensor, starts: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Scan h = exp(step A) h + step B x, from 0 where ``starts``, (batch, tokens), is not 0; y = C h + D x.

        ``x`` and ``steps`` are (batch, tokens, d_inner), ``B`` and ``C`` (batch, tokens, d_state), and the state
        (batch, d_inner, d_state).
        """
        A = -torch.exp(self.A_log.float())
        found, width = [], max(1, CHUNK_TOKENS // len(x))
        for first in range(0, x.shape[1], width):
            of = slice(first, first + width)
            decays = torch.exp(steps[:, of, :, None] * A)  # (batch, chunk, d_inner, d_state)
            if starts is not None:
                decays = decays * (starts[:, of, None, None] == 0)
            inputs = (steps[:, of] * x[:, of])[..., None] * B[:, of, None]
            states = []
            for decay, added in zip(decays.unbind(1), inputs.unbind(1), strict=True):
                state = torch.addcmul(added, decay, state)
                states.append(state)
            found.append((torch.stack(states, 1) @ C[:, of, :, None]).squeeze(-1))
        return torch.cat(found, 1) + self.D.float() * x, state


@dataclass(frozen=True)
class Mamba1Config(Mamba2Config):
    """Sizes and switches of a Mamba-1 backbone; a head is a channel, and what only Mamba-2 has is not read."""

    mixer: ClassVar[Any] = Mamba1Mixer
    d_state: int = 16
    headdim: int = 1
    dt_rank: int = 1  # of the projection to time steps

    @property
    def conv_dim(self) -> int:
        """Channels of the convolution, which runs over x alone."""
        return self.d_inner

    @property
    def d_in_proj(self) -> int:
        """Rows of ``in_proj``: x, then the gate z."""
        return 2 * self.d_inner

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> "Mamba1Config":
        """Read the parsed object of a ``config.json`` in ``mamba_ssm``'s or transformers' layout."""
        if "d_model" not in config:
            if config.get("hidden_act", "silu") != "silu":
                raise ValueError(f"hidden_act is {config['hidden_act']!r}; expected 'silu'")
            ssm_cfg = {name: config[key] for key, name in _TRANSFORMERS_SSM.items() if key in config}
            config = {name: config[key] for key, name in _TRANSFORMERS.items() if key in config}
            config = {**config, "pad_vocab_size_multiple": 1, "ssm_cfg": ssm_cfg}
        ssm_cfg = config.get("ssm_cfg") or {}
        kept = {key: value for key, value in ssm_cfg.items() if key not in _IGNORED}
        for key in sorted(kept.keys() - {*_TRANSFORMERS_SSM.values()}):
            raise ValueError(
                f"ssm_cfg.{key} is not a key of mamba_ssm's Mamba-1 config.json; expected none such"
            )
        rank = kept.pop("dt_rank", "auto")
        read = super().from_dict({**config, "ssm_cfg": kept | {"layer": "Mamba2"}})
        assert isinstance(read, cls)
        return replace(read, dt_rank=-(-read.d_model // 16) if rank == "auto" else rank)

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write as ``config.json``, in the layout of ``mamba_ssm``."""
        names = _TRANSFORMERS_SSM.values()
        return super().to_dict() | {
            "ssm_cfg": {"layer": "Mamba1"} | {name: getattr(self, name) for name in names}
        }


def read_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read a ``config.json`` of Mamba-1 or Mamba-2, in ``mamba_ssm``'s or transformers' layout."""
    ssm_cfg = config.get("ssm_cfg") or {}
    if "d_model" in config and isinstance(ssm_cfg, Mapping):
        first = ssm_cfg.get("layer", "Mamba1") == "Mamba1"
    else:
        first = config.get("model_type") == "mamba"
    return Mamba1Config.from_dict(config) if first else read_mamba2_config(config)
