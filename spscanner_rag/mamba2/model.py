"""The scanner's network: Mamba-2 blocks, and a head with one logit per unit.

It can go on from the state after earlier tokens.

Parameter names and numbers are those of `mamba_ssm.MambaLMHeadModel` without its
language-model head (Dao and Gu 2024). Weights may be bfloat16 or float32; decays, time
steps, the SSM state and (with ``residual_in_fp32``) the residual are float32.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import (
    TORCH_KERNELS,
    GatedRMSNorm,
    Kernels,
    RMSNorm,
    ScanOperands,
)
from spscanner_rag.mamba2.lexical_sizes import (
    MATCH_CLASSES,
    SOFT_FEATURES,
    SOFT_SCORES,
    SURROUNDINGS,
)

# initial weight of a unit's own score by the meaning of words, whatever the hidden
# state
SOFT_START = 0.2

_FEWEST_ROWS = 16
_SIZES_PER_DOUBLING = 16


class Projection(nn.Linear):
    """A linear layer that pads its input to few different numbers of rows.

    It does so in bfloat16 on a CPU.

    oneDNN compiles a product for every number of rows that it sees, in up to a
    millisecond, and keeps the last thousand, up to a megabyte each: a server would grow
    by a gigabyte.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        if inputs.device.type != "cpu" or inputs.dtype != torch.bfloat16:
            return super().forward(inputs)
        rows = inputs.reshape(-1, inputs.shape[-1])
        missing = filled(len(rows)) - len(rows)
        padded = rows
        if missing:
            padded = F.pad(rows, (0, 0, 0, missing))
        outputs = F.linear(padded, self.weight, self.bias)[: len(rows)]
        return outputs.view(*inputs.shape[:-1], self.out_features)


def filled(rows: int) -> int:
    """Round up to a number of rows that products are made for.

    Above `_FEWEST_ROWS` it is at most a sixteenth more.
    """
    step = max(
        _FEWEST_ROWS, (1 << max(0, rows - 1).bit_length()) // (2 * _SIZES_PER_DOUBLING)
    )
    return -(-rows // step) * step


class LayerState(NamedTuple):
    """The memory that one layer has of earlier tokens."""

    conv: Tensor  # (batch, d_conv - 1, conv_dim): the last inputs of the convolution
    ssm: Tensor  # (batch, nheads, headdim, d_state), float32


ScanState = tuple[LayerState, ...]
"""The memory that the model's layers have of earlier tokens; its size does not
depend on the number of tokens."""

Positions = tuple[Tensor, Tensor]
"""Row indices and token indices of positions in (batch, tokens): both (units,),
int64."""


class Backbone(nn.Module):
    """Embedding, residual blocks and final norm."""

    recomputes = False
    """If True, training keeps only the input of each block, and computes the rest
    again for the gradients."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.residual_in_fp32 = config.residual_in_fp32
        self.embedding = nn.Embedding(config.padded_vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm_f = RMSNorm(config.d_model, config.norm_epsilon)

    def forward(
        self,
        embedded: Tensor,
        state: ScanState,
        sequence_index: Tensor | None,
        at: Positions | None,
    ) -> tuple[Tensor, ScanState]:
        """``embedded``: (batch, tokens, d_model).

        With ``at``, the output is (units, d_model).
        """
        residual = embedded
        if self.residual_in_fp32:
            residual = embedded.float()
        after = []
        last = len(self.layers) - 1
        for number, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            # of the last layer, only the outputs at the requested positions are used
            inputs = residual, before, sequence_index, at if number == last else None
            if self.recomputes and torch.is_grad_enabled():
                # nothing is random, so no random state has to be kept
                residual, layer_state = checkpoint(
                    layer, *inputs, use_reentrant=False, preserve_rng_state=False
                )
            else:
                residual, layer_state = layer(*inputs)
            after.append(layer_state)
        return self.norm_f(residual), tuple(after)


class Block(nn.Module):
    """residual + mixer(norm(residual))."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.norm = RMSNorm(config.d_model, config.norm_epsilon)
        self.mixer = (config.mixer or Mamba2Mixer)(config)

    def forward(
        self,
        residual: Tensor,
        state: LayerState,
        sequence_index: Tensor | None,
        at: Positions | None,
    ) -> tuple[Tensor, LayerState]:
        """``residual``: (batch, tokens, d_model).

        With ``at``, the output is (units, d_model).
        """
        normed = self.mixer.kernels.norm(self.norm, residual)
        mixed, state = self.mixer(normed, state, sequence_index, at)
        if at is not None:
            residual = residual[at]
        return residual + mixed, state


class Mamba2Mixer(nn.Module):
    """The Mamba-2 layer (Dao and Gu 2024, section 7).

    It is projection, causal convolution, SSD, gated norm and projection.
    """

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.config = config
        self.kernels: Kernels = TORCH_KERNELS
        self.in_proj = Projection(config.d_model, config.d_in_proj, bias=config.bias)
        self.conv1d = nn.Conv1d(
            config.conv_dim,
            config.conv_dim,
            config.d_conv,
            groups=config.conv_dim,
            bias=config.conv_bias,
        )
        self.dt_bias = nn.Parameter(first_steps(config.nheads))
        # as in mamba-ssm
        self.A_log = nn.Parameter(torch.empty(config.nheads).uniform_(1, 16).log())
        skip_weights = config.d_inner if config.D_has_hdim else config.nheads
        self.D = nn.Parameter(torch.ones(skip_weights))
        if config.rmsnorm:
            self.norm = GatedRMSNorm(config)
        self.out_proj = Projection(config.d_inner, config.d_model, bias=config.bias)

    def forward(
        self,
        u: Tensor,
        state: LayerState,
        sequence_index: Tensor | None,
        at: Positions | None,
    ) -> tuple[Tensor, LayerState]:
        """``u``: (batch, tokens, d_model).

        With ``at``, the output is (units, d_model).
        """
        config = self.config
        batch, tokens, _ = u.shape
        sizes = [config.d_inner, config.conv_dim, config.nheads]
        z, xBC, dt = torch.split(self.in_proj(u), sizes, dim=-1)
        xBC, conv_tail = self.kernels.convolve(
            self.conv1d, xBC, state.conv, sequence_index
        )
        group_width = config.ngroups * config.d_state
        x, B, C = torch.split(xBC, [config.d_inner, group_width, group_width], dim=-1)
        D = self.D.float()
        if config.D_has_hdim:
            D = D.view(config.nheads, config.headdim)
        operands = ScanOperands(
            x.reshape(batch, tokens, config.nheads, config.headdim),
            dt,
            self.dt_bias,
            -torch.exp(self.A_log.float()),
            B.reshape(batch, tokens, config.ngroups, config.d_state),
            C.reshape(batch, tokens, config.ngroups, config.d_state),
            D,
        )
        y, ssm = self.kernels.scan(operands, state.ssm, config, sequence_index)
        y = y.reshape(batch, tokens, config.d_inner)
        if at is not None:
            # (units, d_inner)
            y = y[at]
            z = z[at]
        if config.rmsnorm:
            y = self.kernels.gated_norm(self.norm, y, z)
        else:
            y = y * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm)


def first_steps(count: int) -> Tensor:
    """Initial biases of time steps.

    Softplus of them is log-uniform in [0.001, 0.1], as in mamba-ssm.
    """
    dt = torch.exp(torch.empty(count).uniform_(math.log(0.001), math.log(0.1)))
    return dt + torch.log(-torch.expm1(-dt))


class ScannerModel(nn.Module):
    """Maps token ids to hidden states, and those at unit ends to logits.

    Optional parts: ``match_embedding`` adds an embedding of a token's match class to
    the token's embedding; ``lexical_prior`` adds a unit's lexical score, times a
    learned weight, to its logit; ``surroundings`` adds the scores of its surroundings,
    with weights that depend on the unit's hidden state; ``soft`` adds features of
    matches by meaning, through a learned layer, to the embedding, and further scores to
    the logit. Surroundings need the prior, and soft the other three. Without ``head``
    there are only hidden states.
    """

    def __init__(
        self,
        config: Mamba2Config,
        *,
        match_embedding: bool = False,
        lexical_prior: bool = False,
        surroundings: bool = False,
        soft: bool = False,
        head: bool = True,
    ) -> None:
        super().__init__()
        self.config = config
        self.kernels: Kernels = TORCH_KERNELS
        self.backbone = Backbone(config)
        self.binary_head: nn.Linear | None = None
        self.match_embedding: nn.Embedding | None = None
        self.lexical_prior: nn.Linear | None = None
        self.surroundings: nn.Linear | None = None
        self.soft_match: Projection | None = None
        self.soft_prior: nn.Linear | None = None
        d_model = config.d_model
        if head:
            self.binary_head = nn.Linear(d_model, 1)
        if match_embedding:
            self.match_embedding = nn.Embedding(MATCH_CLASSES, d_model)
        if lexical_prior:
            self.lexical_prior = nn.Linear(1, 1, bias=False)
        if surroundings:
            self.surroundings = nn.Linear(d_model, SURROUNDINGS)
        if soft:
            self.soft_match = Projection(SOFT_FEATURES, d_model, bias=False)
            self.soft_prior = nn.Linear(d_model, SOFT_SCORES)
        self._set_first_weights()

    def _set_first_weights(self) -> None:
        """Set the weights of the optional parts.

        Surroundings and the soft channel, but for its first score, have no effect
        before training.
        """
        if self.match_embedding is not None:
            nn.init.normal_(self.match_embedding.weight, std=0.02)
        if self.lexical_prior is not None:
            nn.init.constant_(self.lexical_prior.weight, 0.5)
        for part in filter(None, (self.surroundings, self.soft_match, self.soft_prior)):
            for parameter in part.parameters():
                nn.init.zeros_(parameter)
        if self.soft_prior is not None:
            nn.init.constant_(self.soft_prior.bias[:1], SOFT_START)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.backbone.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The weights' dtype, except ``A_log``, ``D`` and ``dt_bias`` in float32."""
        return self.backbone.embedding.weight.dtype

    def use_kernels(self, kernels: Kernels) -> None:
        """Compute with these kernels from now on.

        A new model computes with plain torch.
        """
        self.kernels = kernels
        for block in self.backbone.layers:
            mixer: Any = block.mixer
            mixer.kernels = kernels

    def forward(
        self,
        input_ids: Tensor,
        state: ScanState | None = None,
        match_classes: Tensor | None = None,
        *,
        match_features: Tensor | None = None,
        sequence_index: Tensor | None = None,
        at: Positions | None = None,
    ) -> tuple[Tensor, ScanState]:
        """Read tokens, (batch, tokens), from the beginning or after ``state``.

        The state does not change.

        Returns the hidden states after the final norm, (batch, tokens, d_model), and
        the state for the tokens that follow. With the positions ``at``, it returns only
        their hidden states, (units, d_model). ``match_classes``, (batch, tokens), and
        ``match_features``, (batch, tokens, `SOFT_FEATURES`), are needed exactly when
        the model has these parts, else ``ValueError``. ``sequence_index``, (batch,
        tokens), int32, for kernels that pack, numbers the sequences of a row, not
        decreasing: sequence 0 continues from ``state``, the others start from zeros.
        """
        if sequence_index is not None and not self.kernels.packs:
            raise ValueError(
                f"got a sequence index; the {self.kernels.name} kernels read one"
                " sequence per row"
            )
        # (batch, tokens, d_model)
        embedded = self.embedded(input_ids, match_classes, match_features)
        state = state or self.initial_state(input_ids.shape[0])
        if input_ids.shape[1] == 0:
            return embedded if at is None else embedded[at], state
        return self.backbone(embedded, state, sequence_index, at)  # type: ignore[no-any-return]

    def embedded(
        self,
        input_ids: Tensor,
        match_classes: Tensor | None,
        match_features: Tensor | None,
    ) -> Tensor:
        """Token embeddings, plus the lexical channel's: (batch, tokens, d_model)."""
        embedded = self.backbone.embedding(input_ids)
        for name, values, part_name, part in (
            ("match_classes", match_classes, "match embedding", self.match_embedding),
            ("match_features", match_features, "soft channel", self.soft_match),
        ):
            if (values is None) != (part is None):
                raise ValueError(
                    f"pass {name} exactly when the model has a {part_name}"
                )
        if self.match_embedding is not None:
            embedded = embedded + self.match_embedding(match_classes)
        if self.soft_match is not None and match_features is not None:
            embedded = embedded + self.soft_match(match_features.to(embedded.dtype))
        return embedded  # type: ignore[no-any-return]

    @property
    def prior_width(self) -> int:
        """The number of scores in a unit's prior, 0 without a lexical prior."""
        if self.lexical_prior is None:
            return 0
        width = 1
        if self.surroundings is not None:
            width += SURROUNDINGS
        if self.soft_prior is not None:
            width += SOFT_SCORES
        return width

    def score(self, hidden: Tensor, prior: Tensor | None = None) -> Tensor:
        """Return relevance logits, (units,), float32.

        ``hidden`` are the states at the units' last tokens, (units, d_model).

        ``prior``, (units, `prior_width`), is needed exactly when the model has a
        lexical prior.
        """
        if self.binary_head is None:
            raise ValueError(
                "this model has no relevance head: load one with binary_head, or train"
                " one first"
            )
        if (prior is None) != (self.lexical_prior is None):
            raise ValueError(
                "pass a lexical prior exactly when the model has a lexical_prior weight"
            )
        hidden = hidden.float()
        logits = F.linear(
            hidden, self.binary_head.weight.float(), self.binary_head.bias.float()
        )[:, 0]
        if self.lexical_prior is None or prior is None:
            return logits
        if prior.shape[1:] != (self.prior_width,):
            raise ValueError(
                f"prior has shape {tuple(prior.shape)}; expected ({len(hidden)},"
                f" {self.prior_width})"
            )
        logits = logits + self.lexical_prior.weight.float()[0, 0] * prior[:, 0].float()
        first = 1
        for weigh in filter(None, (self.surroundings, self.soft_prior)):
            # (units, scores): how much each score counts depends on the hidden state
            weights = F.linear(hidden, weigh.weight.float(), weigh.bias.float())
            logits = logits + (
                weights * prior[:, first : first + weigh.out_features].float()
            ).sum(1)
            first += weigh.out_features
        return logits

    def initial_state(self, batch: int) -> ScanState:
        """The state before the first token: zeros, for ``batch`` sequences."""
        config = self.config
        conv = torch.zeros(
            batch,
            config.d_conv - 1,
            config.conv_dim,
            device=self.device,
            dtype=self.dtype,
        )
        shape = (batch, config.nheads, config.headdim, config.d_state)
        ssm = torch.zeros(shape, device=self.device, dtype=torch.float32)
        return (LayerState(conv, ssm),) * config.n_layer
