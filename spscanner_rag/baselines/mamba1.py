"""Mamba-1: the configuration and the layer of a backbone, in plain torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.model import LayerState, Positions, Projection, first_steps

CHUNK_TOKENS = 16
"""Tokens, over all rows, whose decays and states are held at a time: more would not
fit a processor's cache."""

# transformers' keys to mamba_ssm's, with the same defaults; those in "ssm_cfg" are
# arguments of `Mamba`.
_TRANSFORMERS: Final = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layer",
    "vocab_size": "vocab_size",
    "layer_norm_epsilon": "norm_epsilon",
    "residual_in_fp32": "residual_in_fp32",
}
_TRANSFORMERS_SSM: Final = {
    "state_size": "d_state",
    "conv_kernel": "d_conv",
    "expand": "expand",
    "time_step_rank": "dt_rank",
    "use_bias": "bias",
    "use_conv_bias": "conv_bias",
}
# They set initial weights or choose a kernel.
_IGNORED: Final = frozenset(
    "layer dt_min dt_max dt_init dt_scale dt_init_floor use_fast_path layer_idx device"
    " dtype".split()
)


class Mamba1Mixer(nn.Module):
    """The Mamba-1 layer in plain torch.

    It is a projection, a causal convolution, a selective scan, a gate and a projection,
    from "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (Gu and Dao
    2023, section 3, algorithm 2): a time step for each channel, and a decay for each
    number in a channel's state. Names and shapes of parameters are those of
    `mamba_ssm`'s `Mamba` and of transformers' `MambaModel`.
    """

    def __init__(self, config: "Mamba1Config") -> None:
        super().__init__()
        self.config = config
        inner = config.d_inner
        self.kernels: Kernels = TORCH_KERNELS
        self.in_proj = Projection(config.d_model, 2 * inner, bias=config.bias)
        self.conv1d = nn.Conv1d(
            inner, inner, config.d_conv, groups=inner, bias=config.conv_bias
        )
        self.x_proj = Projection(inner, config.dt_rank + 2 * config.d_state, bias=False)
        self.dt_proj = nn.Linear(config.dt_rank, inner)
        nn.init.uniform_(
            self.dt_proj.weight, -(config.dt_rank**-0.5), config.dt_rank**-0.5
        )
        self.dt_proj.bias = nn.Parameter(first_steps(inner))
        self.A_log = nn.Parameter(
            torch.arange(1.0, config.d_state + 1).log().repeat(inner, 1)
        )
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = Projection(inner, config.d_model, bias=config.bias)

    def forward(
        self,
        u: Tensor,
        state: LayerState,
        sequence_index: Tensor | None,
        at: Positions | None,
    ) -> tuple[Tensor, LayerState]:
        """Read (batch, tokens, d_model).

        With ``at``, return (units, d_model).
        """
        config = self.config
        x, z = self.in_proj(u).chunk(2, dim=-1)
        x, conv_tail = self.kernels.convolve(self.conv1d, x, state.conv, sequence_index)
        dt, B, C = torch.split(
            self.x_proj(x), [config.dt_rank, config.d_state, config.d_state], dim=-1
        )
        weight = self.dt_proj.weight.float()
        bias = self.dt_proj.bias.float()
        # (batch, tokens, d_inner)
        steps = F.softplus(F.linear(dt.float(), weight, bias).float())
        starts = None
        if sequence_index is not None:
            starts = sequence_index.diff(dim=1, prepend=0 * sequence_index[:, :1])
        y, ssm = self._scan(
            x.float(), steps, B.float(), C.float(), state.ssm.flatten(1, 2), starts
        )
        if at is not None:
            y = y[at]  # (units, d_inner)
            z = z[at]
        y = y.to(z.dtype) * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm.view_as(state.ssm))

    def _scan(
        self,
        x: Tensor,
        steps: Tensor,
        B: Tensor,
        C: Tensor,
        state: Tensor,
        starts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Scan h = exp(step A) h + step B x, and return y = C h + D x.

        h is 0 where a sequence begins: where ``starts``, (batch, tokens), is not 0.
        ``x`` and ``steps`` are (batch, tokens, d_inner), ``B`` and ``C`` (batch,
        tokens, d_state), and the state (batch, d_inner, d_state).
        """
        A = -torch.exp(self.A_log.float())
        outputs = []
        width = max(1, CHUNK_TOKENS // len(x))
        for first in range(0, x.shape[1], width):
            chunk = slice(first, first + width)
            # (batch, chunk, d_inner, d_state)
            decays = torch.exp(steps[:, chunk, :, None] * A)
            if starts is not None:
                decays = decays * (starts[:, chunk, None, None] == 0)
            inputs = (steps[:, chunk] * x[:, chunk])[..., None] * B[:, chunk, None]
            states = []
            for decay, added in zip(decays.unbind(1), inputs.unbind(1), strict=True):
                state = torch.addcmul(added, decay, state)
                states.append(state)
            output = torch.stack(states, 1) @ C[:, chunk, :, None]
            outputs.append(output.squeeze(-1))
        return torch.cat(outputs, 1) + self.D.float() * x, state


@dataclass(frozen=True)
class Mamba1Config(Mamba2Config):
    """Sizes and switches of a Mamba-1 backbone.

    Each channel is a head, and Mamba-2's own fields are unused.
    """

    mixer: ClassVar[Any] = Mamba1Mixer
    d_state: int = 16
    headdim: int = 1
    dt_rank: int = 1  # rank of the projection to time steps

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
        """Read the parsed object of a ``config.json``.

        Its layout is ``mamba_ssm``'s or transformers'.
        """
        if "d_model" not in config:
            if config.get("hidden_act", "silu") != "silu":
                raise ValueError(
                    f"hidden_act is {config['hidden_act']!r}; expected 'silu'"
                )
            ssm_cfg = _renamed(config, _TRANSFORMERS_SSM)
            config = _renamed(config, _TRANSFORMERS)
            config = {**config, "pad_vocab_size_multiple": 1, "ssm_cfg": ssm_cfg}
        layer = dict(config.get("ssm_cfg") or {})
        for key in _IGNORED:
            layer.pop(key, None)
        for key in sorted(layer.keys() - {*_TRANSFORMERS_SSM.values()}):
            raise ValueError(
                f"ssm_cfg.{key} is not a key of mamba_ssm's Mamba-1 config.json;"
                " expected its keys only"
            )
        dt_rank = layer.pop("dt_rank", "auto")
        sizes = super().from_dict({**config, "ssm_cfg": layer | {"layer": "Mamba2"}})
        assert isinstance(sizes, cls)
        if dt_rank == "auto":
            dt_rank = -(-sizes.d_model // 16)
        return replace(sizes, dt_rank=dt_rank)

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write as ``config.json``, as ``mamba_ssm`` does."""
        layer: dict[str, Any] = {"layer": "Mamba1"}
        for name in _TRANSFORMERS_SSM.values():
            layer[name] = getattr(self, name)
        return super().to_dict() | {"ssm_cfg": layer}


def _renamed(config: Mapping[str, Any], new_names: Mapping[str, str]) -> dict[str, Any]:
    """The values that a configuration has under some keys, by their new names."""
    values = {}
    for key, new_name in new_names.items():
        if key in config:
            values[new_name] = config[key]
    return values
