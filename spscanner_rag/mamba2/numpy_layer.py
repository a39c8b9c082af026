"""A Mamba-2 layer in numpy's float32, without torch, for one sequence at a time.

It computes what `mamba2.model.Block` computes with `mamba2.kernels.torch`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.ssd_blocks import CHUNK_TOKENS, SMALLEST_LOG_DECAY
from spscanner_rag.system.numpy_functions import silu_in_place, softplus

Floats = NDArray[np.float32]


class NumpyLayerState(NamedTuple):
    """The memory that one layer has of earlier tokens."""

    conv: Floats  # (d_conv - 1, conv_dim): the last inputs of the convolution
    ssm: Floats  # (nheads, headdim, d_state)

    @classmethod
    def initial(cls, config: Mamba2Config) -> "NumpyLayerState":
        """The state before the first token: zeros."""
        return cls(
            np.zeros((config.d_conv - 1, config.conv_dim), np.float32),
            np.zeros((config.nheads, config.headdim, config.d_state), np.float32),
        )


def layer_tensors(config: Mamba2Config) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a layer, by its name in `mamba2.model.Block`."""
    width = config.d_model
    skips = config.d_inner if config.D_has_hdim else config.nheads
    shapes: dict[str, tuple[int, ...]] = {
        "norm.weight": (width,),
        "mixer.in_proj.weight": (config.d_in_proj, width),
        "mixer.conv1d.weight": (config.conv_dim, 1, config.d_conv),
        "mixer.dt_bias": (config.nheads,),
        "mixer.A_log": (config.nheads,),
        "mixer.D": (skips,),
        "mixer.out_proj.weight": (width, config.d_inner),
    }
    if config.bias:
        shapes["mixer.in_proj.bias"] = (config.d_in_proj,)
        shapes["mixer.out_proj.bias"] = (width,)
    if config.conv_bias:
        shapes["mixer.conv1d.bias"] = (config.conv_dim,)
    if config.rmsnorm:
        shapes["mixer.norm.weight"] = (config.d_inner,)
    return shapes


class NumpyLayer:
    """residual + mixer(norm(residual)), for one sequence.

    Parameters
    ----------
    config : Mamba2Config
        The sizes.
    weights : mapping of str to array
        What `layer_tensors` lists, in float32.
    """

    def __init__(self, config: Mamba2Config, weights: Mapping[str, Floats]) -> None:
        self.config = config
        self._weights = dict(weights)
        self._decay_rates = -np.exp(self._weights["mixer.A_log"])  # (nheads,)
        skips = self._weights["mixer.D"]
        # (nheads, headdim) or (nheads, 1)
        self._skips = skips.reshape(config.nheads, -1)

    def __call__(
        self, residual: Floats, state: NumpyLayerState
    ) -> tuple[Floats, NumpyLayerState]:
        """Read tokens, (tokens, d_model), after a state, which does not change."""
        config = self.config
        normed = rms_normed(residual, config.norm_epsilon)
        normed *= self._weights["norm.weight"]
        projected = self._linear("in_proj", normed)  # (tokens, d_in_proj)
        ends = [config.d_inner, config.d_inner + config.conv_dim]
        z, xBC, dt = np.split(projected, ends, axis=1)
        xBC, tail = self._convolved(xBC, state.conv)
        y, ssm = self._scan(xBC, self._time_steps(dt), state.ssm)
        mixed = self._linear("out_proj", self._gated(y, z))
        mixed += residual
        return mixed, NumpyLayerState(tail, ssm)

    def _linear(self, name: str, x: Floats) -> Floats:
        products: Floats = x @ self._weights[f"mixer.{name}.weight"].T
        if self.config.bias:
            products += self._weights[f"mixer.{name}.bias"]
        return products

    def _convolved(self, xBC: Floats, tail: Floats) -> tuple[Floats, Floats]:
        """Causal depthwise convolution and SiLU, and the tail for later tokens."""
        tokens = len(xBC)
        extended = np.concatenate([tail, xBC])  # (d_conv - 1 + tokens, conv_dim)
        taps = self._weights["mixer.conv1d.weight"][:, 0].T  # (d_conv, conv_dim)
        out = extended[:tokens] * taps[0]
        for shift in range(1, len(taps)):
            out += extended[shift : shift + tokens] * taps[shift]
        if self.config.conv_bias:
            out += self._weights["mixer.conv1d.bias"]
        silu_in_place(out)
        return out, extended[tokens:].copy()

    def _time_steps(self, dt: Floats) -> Floats:
        """Time steps after bias, softplus and clamping: (tokens, nheads)."""
        steps = softplus(dt + self._weights["mixer.dt_bias"])
        if self.config.dt_limit != (0.0, math.inf):
            np.clip(steps, *self.config.dt_limit, out=steps)
        return steps

    def _gated(self, y: Floats, z: Floats) -> Floats:
        """RMS norm of ``y`` with the gate ``z``, both (tokens, d_inner)."""
        config = self.config
        gate = z.copy()
        silu_in_place(gate)
        if not config.rmsnorm:
            return y * gate
        gated = y if config.norm_before_gate else y * gate
        by_group = gated.reshape(len(y), config.ngroups, -1)
        normed = rms_normed(by_group, config.norm_epsilon).reshape(y.shape)
        normed *= self._weights["mixer.norm.weight"]
        if config.norm_before_gate:
            normed *= gate
        return normed

    def _scan(self, xBC: Floats, dt: Floats, state: Floats) -> tuple[Floats, Floats]:
        """The state-space operator: y, (tokens, d_inner), and the state after it.

        Source: Dao and Gu 2024, section 6; see `mamba2.ssd`. Between blocks it is a
        recurrence, inside a block a matrix product.
        """
        y = np.empty((len(xBC), self.config.d_inner), np.float32)
        for start in range(0, len(xBC), CHUNK_TOKENS):
            block = slice(start, start + CHUNK_TOKENS)
            y[block], state = self._scan_block(xBC[block], dt[block], state)
        return y, state

    def _scan_block(
        self, xBC: Floats, dt: Floats, state: Floats
    ) -> tuple[Floats, Floats]:
        config = self.config
        tokens = len(xBC)
        groups = config.ngroups
        heads = config.nheads
        ends = [config.d_inner, config.d_inner + groups * config.d_state]
        x, B, C = np.split(xBC, ends, axis=1)
        x = x.reshape(tokens, heads, -1).transpose(1, 0, 2)  # (heads, tokens, headdim)
        B = B.reshape(tokens, groups, -1).transpose(
            1, 0, 2
        )  # (groups, tokens, d_state)
        C = C.reshape(tokens, groups, -1).transpose(1, 0, 2)
        dt = dt.T  # (heads, tokens)
        # from the block's start: (heads, tokens)
        log_decay = np.cumsum(dt * self._decay_rates[:, None], axis=1)
        driven = x * dt[..., None]

        # 1. inside the block
        similarity = np.tril(C @ B.transpose(0, 2, 1))  # (groups, tokens, tokens)
        # Above the diagonal, where the similarity is 0, _exp keeps it from overflow.
        mixing = _exp(log_decay[:, :, None] - log_decay[:, None, :])
        mixing = mixing.reshape(groups, -1, tokens, tokens)
        mixing *= similarity[:, None]
        # (heads, tokens, headdim)
        y: Floats = mixing.reshape(heads, tokens, tokens) @ driven

        # 2. from the state at the block's start
        by_group = state.reshape(groups, -1, config.d_state)
        entering = C @ by_group.transpose(0, 2, 1)  # (groups, tokens, width)
        entering = entering.reshape(groups, tokens, heads // groups, -1)
        entering = entering.transpose(0, 2, 1, 3).reshape(y.shape)
        y += entering * _exp(log_decay)[..., None]
        y += x * self._skips[:, None]

        # 3. the state at its end
        to_end = _exp(log_decay[:, -1:] - log_decay)  # (heads, tokens)
        ending = (driven * to_end[..., None]).transpose(0, 2, 1)
        ending = ending.reshape(groups, -1, tokens)  # (groups, width, tokens)
        after = state * _exp(log_decay[:, -1])[:, None, None]
        after += (ending @ B).reshape(state.shape)
        return y.transpose(1, 0, 2).reshape(tokens, -1), after


def rms_normed(x: Floats, epsilon: float) -> Floats:
    """Return ``x`` divided by the root mean square of its last dimension."""
    squares = np.einsum("...i,...i->...", x, x)[..., None] / np.float32(x.shape[-1])
    return np.asarray(x / np.sqrt(squares + np.float32(epsilon)), np.float32)


def _exp(log_decay: Floats) -> Floats:
    """Decay factors, clamped to avoid denormal numbers."""
    return np.asarray(np.exp(np.clip(log_decay, SMALLEST_LOG_DECAY, 0.0)), np.float32)
