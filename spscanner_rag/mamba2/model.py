"""The scanner's network: Mamba-2 blocks, a head that gives one logit per unit, and a state to continue from.

Parameter names and numbers are those of `mamba_ssm.MambaLMHeadModel` with a Mamba-2 mixer (Dao and Gu 2024),
without its language-model head. Weights may be bfloat16 or float32; decays, time steps, the carried SSM state
and (with ``residual_in_fp32``) the residual stream are always float32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels import TORCH_KERNELS, Kernels, ScanOperands
from spscanner_rag.mamba2.norms import GatedRMSNorm, RMSNorm

MATCH_CLASSES = 7
"""Rows of the match embedding: 0 no match, 1 to 5 a word that also occurs in the query, by its idf in the
document, 6 a token of the query itself."""

SURROUNDINGS = 3
"""Number of lexical scores of a unit's surroundings, in addition to its own score."""


class LayerState(NamedTuple):
    """What one layer remembers of earlier tokens."""

    conv: Tensor  # (batch, d_conv - 1, conv_dim): the last inputs of the convolution
    ssm: Tensor  # (batch, nheads, headdim, d_state), float32


class ScanState(NamedTuple):
    """What the model remembers of earlier tokens: its size does not depend on their number."""

    layers: tuple[LayerState, ...]


Positions = tuple[Tensor, Tensor]
"""Row indices and token indices of positions in (batch, tokens): both (units,), int64."""


class ScannerModel(nn.Module):
    """Token ids to hidden states, hidden states at unit ends to relevance logits.

    Parameters
    ----------
    config : Mamba2Config
    match_embedding : bool, default False
        Whether an embedding of the token's match class is added to the token embedding.
    lexical_prior : bool, default False
        Whether a unit's lexical score, times a learned weight, is added to its logit.
    surroundings : bool, default False
        Whether the lexical scores of its surroundings are added too, each times a weight that depends on the
        unit's hidden state: evidence in a story spreads over more sentences than in a contract, and a scanner
        that reads forwards has not seen those that follow. A ``ValueError`` without the lexical prior.
    head : bool, default True
        Whether there is a relevance head; without it the model only gives hidden states.
    """

    def __init__(
        self,
        config: Mamba2Config,
        *,
        match_embedding: bool = False,
        lexical_prior: bool = False,
        surroundings: bool = False,
        head: bool = True,
    ) -> None:
        super().__init__()
        if surroundings and not lexical_prior:
            raise ValueError("surroundings without lexical_prior; expected both, or the prior alone")
        self.config = config
        self.kernels: Kernels = TORCH_KERNELS
        self.backbone = Backbone(config)
        self.binary_head = nn.Linear(config.d_model, 1) if head else None
        self.match_embedding = nn.Embedding(MATCH_CLASSES, config.d_model) if match_embedding else None
        self.lexical_prior = nn.Linear(1, 1, bias=False) if lexical_prior else None
        self.surroundings = nn.Linear(config.d_model, SURROUNDINGS) if surroundings else None
        if self.match_embedding is not None:
            nn.init.normal_(self.match_embedding.weight, std=0.02)
        if self.lexical_prior is not None:
            nn.init.constant_(self.lexical_prior.weight, 0.5)
        if self.surroundings is not None:  # no effect before training
            nn.init.zeros_(self.surroundings.weight)
            nn.init.zeros_(self.surroundings.bias)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype, except ``A_log``, ``D`` and ``dt_bias``, which are float32."""
        return self.backbone.embedding.weight.dtype

    def use_kernels(self, kernels: Kernels) -> None:
        """Compute with these kernels from now on; a new model computes in plain torch."""
        self.kernels = kernels
        for module in self.modules():
            if isinstance(module, Mamba2Mixer):
                module.kernels = kernels

    def forward(
        self,
        input_ids: Tensor,
        state: ScanState | None = None,
        match_classes: Tensor | None = None,
        *,
        sequence_index: Tensor | None = None,
        at: Positions | None = None,
    ) -> tuple[Tensor, ScanState]:
        """Read tokens, from the beginning or from where ``state`` left off.

        Parameters
        ----------
        input_ids : (batch, tokens), integer
        state : ScanState, optional
            As returned for the tokens before; None at the beginning.
        match_classes : (batch, tokens), integer, optional
            Lexical match class of each token; needed exactly when the model has a match embedding.
        sequence_index : (batch, tokens), int32, optional
            For kernels that pack: the number of the sequence in its row that a token belongs to, not decreasing.
            Sequence 0 continues from ``state``; the others start from zeros.
        at : pair of (units,), int64, optional
            Positions whose hidden states to return; the last layer skips most of its work for all others.

        Returns
        -------
        hidden : (batch, tokens, d_model), or (units, d_model) with ``at``; after the final norm
        state : ScanState
            To pass with the tokens that follow. The one passed in is not changed.

        Raises
        ------
        ValueError
            If match classes are missing, or given to a model without a match embedding; or for a sequence index
            where the kernels do not pack.
        """
        if sequence_index is not None and not self.kernels.packs:
            raise ValueError(
                f"got a sequence index; the {self.kernels.name} kernels read one sequence per row"
            )
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
            return embedded if at is None else embedded[at], state
        return self.backbone(embedded, state, sequence_index, at)  # type: ignore[no-any-return]

    def score(self, hidden: Tensor, prior: Tensor | None = None) -> Tensor:
        """Relevance logits, (units,), float32, from the hidden states at the units' last tokens, (units, d_model).

        ``prior``, (units, scores), is needed exactly when the model has a lexical prior: the lexical scores of
        each unit, its own and with ``surroundings`` those of the three stretches around it. Raises ``ValueError``
        if the model has no head, or the prior is missing, not expected or of the wrong width.
        """
        if self.binary_head is None:
            raise ValueError(
                "this model has no relevance head: load one with binary_head, or train one first"
            )
        if (prior is None) != (self.lexical_prior is None):
            raise ValueError("pass a lexical prior exactly when the model has a lexical_prior weight")
        hidden = hidden.float()
        logits = F.linear(hidden, self.binary_head.weight.float(), self.binary_head.bias.float())[:, 0]
        if self.lexical_prior is None or prior is None:
            return logits
        width = 1 if self.surroundings is None else 1 + SURROUNDINGS
        if prior.shape[1:] != (width,):
            raise ValueError(f"prior has shape {tuple(prior.shape)}; expected ({len(hidden)}, {width})")
        logits = logits + self.lexical_prior.weight.float()[0, 0] * prior[:, 0].float()
        if self.surroundings is None:
            return logits
        # (units, 3): how much the scores of a unit's surroundings count
        weights = F.linear(hidden, self.surroundings.weight.float(), self.surroundings.bias.float())
        return logits + (weights * prior[:, 1:].float()).sum(1)

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

    def forward(
        self, embedded: Tensor, state: ScanState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, ScanState]:
        """``embedded``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        residual = embedded.float() if self.residual_in_fp32 else embedded
        after = []
        last = len(self.layers) - 1
        for number, (layer, before) in enumerate(zip(self.layers, state.layers, strict=True)):
            # of the last layer, only the outputs at the requested positions are used
            residual, layer_state = layer(residual, before, sequence_index, at if number == last else None)
            after.append(layer_state)
        return self.norm_f(residual), ScanState(tuple(after))


class Block(nn.Module):
    """residual + mixer(norm(residual))."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.norm = RMSNorm(config.d_model, config.norm_epsilon)
        self.mixer = Mamba2Mixer(config)

    def forward(
        self, residual: Tensor, state: LayerState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, LayerState]:
        """``residual``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        mixed, state = self.mixer(self.norm(residual), state, sequence_index, at)
        return (residual if at is None else residual[at]) + mixed, state


class Mamba2Mixer(nn.Module):
    """The Mamba-2 layer: projection, causal convolution, SSD, gated norm, projection (paper, section 7)."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.config = config
        self.kernels: Kernels = TORCH_KERNELS
        self.in_proj = nn.Linear(config.d_model, config.d_in_proj, bias=config.bias)
        self.conv1d = nn.Conv1d(
            config.conv_dim, config.conv_dim, config.d_conv, groups=config.conv_dim, bias=config.conv_bias
        )
        # initialized as in mamba-ssm: steps log-uniform in [0.001, 0.1], A uniform in [1, 16]
        dt = torch.exp(torch.empty(config.nheads).uniform_(math.log(0.001), math.log(0.1)))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))  # softplus gives dt back
        self.A_log = nn.Parameter(torch.empty(config.nheads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(config.d_inner if config.D_has_hdim else config.nheads))
        if config.rmsnorm:
            self.norm = GatedRMSNorm(config)
        self.out_proj = nn.Linear(config.d_inner, config.d_model, bias=config.bias)

    def forward(
        self, u: Tensor, state: LayerState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, LayerState]:
        """``u``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        config = self.config
        batch, tokens, _ = u.shape
        sizes = [config.d_inner, config.conv_dim, config.nheads]
        z, xBC, dt = torch.split(self.in_proj(u), sizes, dim=-1)
        xBC, conv_tail = self.kernels.convolve(self.conv1d, xBC, state.conv, sequence_index)
        group_width = config.ngroups * config.d_state
        x, B, C = torch.split(xBC, [config.d_inner, group_width, group_width], dim=-1)
        D = self.D.float()
        operands = ScanOperands(
            x.reshape(batch, tokens, config.nheads, config.headdim),
            dt,
            self.dt_bias,
            -torch.exp(self.A_log.float()),
            B.reshape(batch, tokens, config.ngroups, config.d_state),
            C.reshape(batch, tokens, config.ngroups, config.d_state),
            D.view(config.nheads, config.headdim) if config.D_has_hdim else D,
        )
        y, ssm = self.kernels.scan(operands, state.ssm, config, sequence_index)
        y = y.reshape(batch, tokens, config.d_inner)
        if at is not None:
            y, z = y[at], z[at]  # (units, d_inner)
        y = self.kernels.gated_norm(self.norm, y, z) if config.rmsnorm else y * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm)
