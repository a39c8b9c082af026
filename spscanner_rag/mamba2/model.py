"""The scanner's network: Mamba-2 blocks, one logit for a token, a state to go on from.

Parameter names and numbers are those of `mamba_ssm.MambaLMHeadModel` with a Mamba-2 mixer (Dao and Gu 2024),
less its language-model head. Weights may be bfloat16 or float32; decays, time steps, the carried SSM state
and (with ``residual_in_fp32``) the residual stream are float32 always.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.convolution import depthwise_by_image, depthwise_by_shifts
from spscanner_rag.mamba2.ssd import ssd_chunked

MATCH_CLASSES = 7
"""Rows of the match embedding: 0 no match, 1 to 5 a word that also occurs in the query, by its idf in the
document, 6 a token of the query itself."""


class LayerState(NamedTuple):
    """What one layer remembers of the tokens before."""

    conv: Tensor  # (batch, d_conv - 1, conv_dim): the last inputs of the convolution
    ssm: Tensor  # (batch, nheads, headdim, d_state), float32


class ScanState(NamedTuple):
    """What the model remembers of the tokens before: its size does not depend on their number."""

    layers: tuple[LayerState, ...]


class ScannerModel(nn.Module):
    """Token ids to hidden states, hidden states at unit ends to relevance logits.

    Parameters
    ----------
    config : Mamba2Config
    match_embedding : bool, default False
        Whether an embedding of the token's match class is added to the token embedding.
    lexical_prior : bool, default False
        Whether a unit's lexical score, times a learned weight, is added to its logit.
    head : bool, default True
        Whether there is a relevance head; without it the model only gives hidden states.
    """

    def __init__(
        self,
        config: Mamba2Config,
        *,
        match_embedding: bool = False,
        lexical_prior: bool = False,
        head: bool = True,
    ) -> None:
        super().__init__()
        self.config = config
        self.backbone = Backbone(config)
        self.binary_head = nn.Linear(config.d_model, 1) if head else None
        self.match_embedding = nn.Embedding(MATCH_CLASSES, config.d_model) if match_embedding else None
        self.lexical_prior = nn.Linear(1, 1, bias=False) if lexical_prior else None
        if self.match_embedding is not None:
            nn.init.normal_(self.match_embedding.weight, std=0.02)
        if self.lexical_prior is not None:
            nn.init.constant_(self.lexical_prior.weight, 0.5)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype (``A_log``, ``D`` and ``dt_bias`` are float32 beside it)."""
        return self.backbone.embedding.weight.dtype

    def forward(
        self, input_ids: Tensor, state: ScanState | None = None, match_classes: Tensor | None = None
    ) -> tuple[Tensor, ScanState]:
        """Read tokens, from the beginning or from where ``state`` left off.

        Parameters
        ----------
        input_ids : (batch, tokens), integer
        state : ScanState, optional
            As returned for the tokens before these; None at the beginning.
        match_classes : (batch, tokens), integer, optional
            Lexical match class of each token; needed exactly when the model has a match embedding.

        Returns
        -------
        hidden : (batch, tokens, d_model), after the final norm
        state : ScanState
            To be given with the tokens that follow. The one passed in is not changed.

        Raises
        ------
        ValueError
            If match classes are missing, or given to a model that has no use for them.
        """
        embedded = self.backbone.embedding(input_ids)  # (batch, tokens, d_model)
        if (match_classes is None) != (self.match_embedding is None):
            have = "no match embedding" if self.match_embedding is None else "a match embedding"
            got = "no match classes" if match_classes is None else "match classes"
            raise ValueError(
                f"got {got} for a model that has {have}: pass match_classes exactly when it has one"
            )
        if self.match_embedding is not None:
            embedded = embedded + self.match_embedding(match_classes)
        state = state or self.initial_state(input_ids.shape[0])
        if input_ids.shape[1] == 0:
            return embedded, state
        hidden, state = self.backbone(embedded, state)
        return hidden, state

    def score(self, hidden: Tensor, prior: Tensor | None = None) -> Tensor:
        """Relevance logits of units from the hidden states at their ends.

        Parameters
        ----------
        hidden : (units, d_model)
            From `forward`, at the units' last tokens.
        prior : (units,), optional
            Lexical score of each unit; needed exactly when the model has a lexical prior.

        Returns
        -------
        logits : (units,), float32

        Raises
        ------
        ValueError
            If the model has no head, or the prior is missing or of no use.
        """
        if self.binary_head is None:
            raise ValueError(
                "this model has no relevance head: load one with binary_head, or train one first"
            )
        if (prior is None) != (self.lexical_prior is None):
            raise ValueError("pass a lexical prior exactly when the model has a lexical_prior weight")
        logits = F.linear(hidden.float(), self.binary_head.weight.float(), self.binary_head.bias.float())[
            :, 0
        ]
        if self.lexical_prior is not None and prior is not None:
            logits = logits + self.lexical_prior.weight.float()[0, 0] * prior.float()
        return logits

    def initial_state(self, batch: int) -> ScanState:
        """The state before the first token: zeros, for ``batch`` sequences."""
        config = self.config
        conv = torch.zeros(batch, config.d_conv - 1, config.conv_dim, device=self.device, dtype=self.dtype)
        shape = (batch, config.nheads, config.headdim, config.d_state)
        ssm = torch.zeros(shape, device=self.device, dtype=torch.float32)
        return ScanState((LayerState(conv, ssm),) * config.n_layer)


class Backbone(nn.Module):
    """Embedding, residual blocks and final norm."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.residual_in_fp32 = config.residual_in_fp32
        self.embedding = nn.Embedding(config.padded_vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm_f = RMSNorm(config.d_model, config.norm_epsilon)

    def forward(self, embedded: Tensor, state: ScanState) -> tuple[Tensor, ScanState]:
        """``embedded``: (batch, tokens, d_model)."""
        residual = embedded.float() if self.residual_in_fp32 else embedded
        after = []
        for layer, before in zip(self.layers, state.layers, strict=True):
            residual, layer_state = layer(residual, before)
            after.append(layer_state)
        return self.norm_f(residual), ScanState(tuple(after))


class Block(nn.Module):
    """residual + mixer(norm(residual))."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.norm = RMSNorm(config.d_model, config.norm_epsilon)
        self.mixer = Mamba2Mixer(config)

    def forward(self, residual: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """``residual``: (batch, tokens, d_model)."""
        mixed, state = self.mixer(self.norm(residual), state)
        return residual + mixed, state


class Mamba2Mixer(nn.Module):
    """The Mamba-2 layer: projection, causal convolution, SSD, gated norm, projection (paper, section 7)."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.config = config
        self.in_proj = nn.Linear(config.d_model, config.d_in_proj, bias=config.bias)
        self.conv1d = nn.Conv1d(
            config.conv_dim, config.conv_dim, config.d_conv, groups=config.conv_dim, bias=config.conv_bias
        )
        # as mamba-ssm starts them: steps log-uniform in [0.001, 0.1], A uniform in [1, 16]
        dt = torch.exp(torch.empty(config.nheads).uniform_(math.log(0.001), math.log(0.1)))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))  # softplus gives dt back
        self.A_log = nn.Parameter(torch.empty(config.nheads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(config.d_inner if config.D_has_hdim else config.nheads))
        if config.rmsnorm:
            self.norm = GatedRMSNorm(config)
        self.out_proj = nn.Linear(config.d_inner, config.d_model, bias=config.bias)

    def forward(self, u: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """``u``: (batch, tokens, d_model)."""
        config = self.config
        batch, tokens, _ = u.shape
        sizes = [config.d_inner, config.conv_dim, config.nheads]
        z, xBC, dt = torch.split(self.in_proj(u), sizes, dim=-1)
        xBC, conv_tail = self._convolve(xBC, state.conv)
        group_width = config.ngroups * config.d_state
        x, B, C = torch.split(xBC, [config.d_inner, group_width, group_width], dim=-1)
        dt = F.softplus(dt.float() + self.dt_bias.float())  # (batch, tokens, nheads)
        if config.dt_limit != (0.0, math.inf):
            dt = dt.clamp(*config.dt_limit)
        D = self.D.float()
        y, ssm = ssd_chunked(
            x.reshape(batch, tokens, config.nheads, config.headdim),
            dt,
            -torch.exp(self.A_log.float()),
            B.reshape(batch, tokens, config.ngroups, config.d_state),
            C.reshape(batch, tokens, config.ngroups, config.d_state),
            D.view(config.nheads, config.headdim) if config.D_has_hdim else D,
            state.ssm,
        )
        y = y.reshape(batch, tokens, config.d_inner)
        y = self.norm(y, z) if config.rmsnorm else y * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm)

    def _convolve(self, xBC: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        """Causal depthwise convolution and SiLU; ``tail`` stands for the inputs before the first."""
        tokens = xBC.shape[1]
        extended = torch.cat((tail.to(xBC.dtype), xBC), dim=1)  # (batch, d_conv - 1 + tokens, conv_dim)
        # Backwards, a depthwise convolution is several times slower in bfloat16 than in float32 on CPU.
        dtype = torch.float32 if torch.is_grad_enabled() else xBC.dtype
        weight, bias = self.conv1d.weight.to(dtype), self.conv1d.bias
        convolve = depthwise_by_shifts if xBC.is_cuda else depthwise_by_image
        with torch.autocast(xBC.device.type, enabled=False):
            out = convolve(extended.to(dtype), weight, None if bias is None else bias.to(dtype))
        out = F.silu(out)  # (batch, tokens, conv_dim)
        # a copy, so that the state does not keep the whole segment in memory
        return out.to(xBC.dtype), extended[:, tokens:].detach().clone()


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
            y.view(*y.shape[:-1], self.groups, -1), (y.shape[-1] // self.groups,), eps=self.epsilon
        )
        y = y.flatten(-2) * self.weight.float()
        return (y * gate if self.norm_before_gate else y).to(z.dtype)
