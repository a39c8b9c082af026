"""Rerankers, which read the query together with one unit: cross-encoders, Mamba-1 and Mamba-2 models.

The Mamba rerankers are those of "State Space Models are Strong Text Rerankers" (Xu et
al., 2024).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.baselines.base import (
    Pair,
    Pointwise,
    Scores,
    UnitKind,
    check_whole,
    load_by_library,
)
from spscanner_rag.checkpoint.config import HEAD_TENSORS, canonical_name
from spscanner_rag.checkpoint.config import read_config as read_mamba2_config
from spscanner_rag.checkpoint.file_access import CheckpointError, HubOptions
from spscanner_rag.checkpoint.load import Layout, load_checkpoint
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.model import LayerState, Positions, Projection, first_steps
from spscanner_rag.mamba2.reader import TokenSequence, read_logits
from spscanner_rag.scan.devices import choose, default_segment_tokens
from spscanner_rag.scan.passes import in_runs
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.tokenization_in_parts import tokenize_in_parts
from spscanner_rag.text.units import Segmenter

BATCH = 32  # pairs per forward pass of a cross-encoder

TEMPLATE: Final = "document: {document}; query: {query};"
"""The input for a pair.

An end-of-text token follows, and the logit is computed from that token's hidden state.
"""

FIRST_P_TOKENS: Final = 512
LONG_P_TOKENS: Final = 1536
"""Tokens at the start of each document that the paper's settings FirstP and LongP
read."""

END_TOKENS: Final = ("<|endoftext|>", "</s>", "<|im_end|>")
"""Names of the end token, in the order in which they are looked up in a tokenizer."""

_PIECE_CHARACTERS: Final = 32_768


class CrossEncoder(Pointwise):
    """A cross-encoder (Nogueira and Cho, 2019): a transformer with one relevance logit for "query, unit".

    Pairs longer than the model's limit are truncated, as in its training.

    Parameters
    ----------
    model : str or Path
        A Hub id such as "cross-encoder/ms-marco-MiniLM-L6-v2", or a local folder.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    unit, device, dtype
        See `Baseline` and `Scanner.from_pretrained`.
    """

    def __init__(
        self,
        model: str | Path,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(unit)
        choice = choose(device, dtype)
        self.name, self.trust_remote_code = f"crossencoder:{model}", trust_remote_code
        self._model = load_by_library(
            "CrossEncoder",
            model,
            trust_remote_code,
            device=str(choice.device),
            model_kwargs={"dtype": choice.dtype},
            # the folder names an activation function, which would be called; `predict`
            # has to return logits anyway
            activation_fn=torch.nn.Identity(),
        )
        config = self._model.config
        if config.num_labels != 1:
            names = ", ".join(map(str, config.id2label.values()))
            raise ValueError(
                f"{self.name} has a head with {config.num_labels} labels ({names});"
                " expected one relevance score: use a cross-encoder that was trained"
                " for ranking"
            )

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits, before the model's activation function: (pairs,)."""
        scores = np.empty(len(pairs), np.float32)
        with self._lock:  # a tokenizer with truncation is not thread-safe
            read = (
                self._model.tokenizer(*pair, truncation=False, verbose=False)
                for pair in pairs
            )
            by_length = np.argsort(
                [-len(each["input_ids"]) for each in read], kind="stable"
            )
        for start in range(0, len(pairs), BATCH):
            stop_if(cancelled)
            batch = by_length[start : start + BATCH]
            with self._lock:
                scores[batch] = self._model.predict(
                    [pairs[i] for i in batch],
                    batch_size=len(batch),
                    activation_fn=torch.nn.Identity(),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        return scores


class PairReader:
    """Makes a reranker's input from a query and a document: the tokens of `TEMPLATE`, then the end token."""

    def __init__(self, tokenizer: Tokenizer, end_token: str | None = None) -> None:
        """Use ``end_token``, or the first of `END_TOKENS`.

        ``ValueError`` if the tokenizer has none.
        """
        names = END_TOKENS if end_token is None else (end_token,)
        found = [
            number
            for name in names
            if (number := tokenizer.token_to_id(name)) is not None
        ]
        if not found:
            raise ValueError(
                f"the tokenizer has no token {' or '.join(names)}; pass end_token=, the"
                " token that ended each input in training"
            )
        self.tokenizer, self.end = tokenizer, found[0]

    def sequence(
        self, query: str, document: str, tokens: int | None = None
    ) -> TokenSequence:
        """One sequence, whose only position is the end token.

        ``tokens`` limits the document's.
        """
        if tokens is not None:
            document = self._start(document, tokens)
        ids = self.ids(TEMPLATE.format(document=document, query=query))
        return TokenSequence(np.append(ids, np.int32(self.end)), np.array([len(ids)]))

    def ids(self, text: str) -> NDArray[np.int32]:
        """Token ids of a text, without special tokens: (tokens,)."""
        pieces = tokenize_in_parts(self.tokenizer, text, _PIECE_CHARACTERS)
        return np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])

    def _start(self, text: str, tokens: int) -> str:
        """The beginning of a text, up to the end of the given number of tokens."""
        for ids, offsets in tokenize_in_parts(self.tokenizer, text, _PIECE_CHARACTERS):
            if tokens <= len(ids):
                return text[: offsets[tokens - 1, 1]]
            tokens -= len(ids)
        return text


class MambaReranker(Pointwise):
    """Mamba reranker (Xu et al., 2024): one logit for each pair of a query and a unit.

    The input is "document: {unit}; query: {query};" and an end-of-text token, whose
    hidden state the head reads.

    Memory does not grow with the length of a unit, so whole documents fit, and nothing
    is truncated unless ``document_tokens`` is given. The paper's FirstP and LongP are
    ``MambaReranker(model, "document", document_tokens=FIRST_P_TOKENS)`` and
    ``LONG_P_TOKENS``.

    Parameters
    ----------
    model : str or Path
        A folder or Hub id of a Mamba-1 or Mamba-2 model, in mamba-ssm's or
        transformers' layout. The head is ``binary_head.weight`` and ``.bias`` (our
        layout), or ``score.weight``, with or without ``score.bias`` (transformers'
        sequence classifiers, with the backbone under ``backbone.`` or ``model.``).
    end_token : str, optional
        Default: the first of "<|endoftext|>", "</s>" and "<|im_end|>" that the
        tokenizer has.
    document_tokens : int, optional
        Tokens at the start of each unit that are read, not counting the template.
        Default: all.
    unit, device, dtype, tokenizer, **hub
        See `Baseline`, `Scanner.from_pretrained` and `HubOptions`.
    """

    def __init__(
        self,
        model: str | Path,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        end_token: str | None = None,
        document_tokens: int | None = None,
        tokenizer: Tokenizer | str | Path | None = None,
        **hub: Unpack[HubOptions],
    ) -> None:
        super().__init__(unit)
        if document_tokens is not None:
            check_whole(document_tokens=document_tokens)
        self.document_tokens = document_tokens
        choice = choose(device, dtype)
        self.name = f"mamba:{model}"
        loaded = load_checkpoint(
            model, device=choice.device, dtype=choice.dtype, tokenizer=tokenizer, encoder=None,
            require_head=False, layout=RERANKER, **hub,
        )  # fmt: skip
        if not loaded.has_head or any(loaded.settings.lexical.values()):
            got = "has a lexical channel, so it is a scanner"
            if not loaded.has_head:
                got = f"neither {HEAD_TENSORS[0]} nor score.weight is there"
            raise CheckpointError(
                f"{loaded.folder}: {got}; expected a trained reranker"
            )
        self._model = loaded.model
        if (
            self._model.config.mixer is None
        ):  # Mamba-1's plain scan is faster in rows than packed into one
            self._model.use_kernels(choose_backend("auto", choice.device).kernels)
        self._pairs = PairReader(loaded.tokenizer, end_token)
        self.segment_tokens = default_segment_tokens(
            choice.device.type, self._model.config
        )

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text with this model's tokenizer, without special tokens."""
        return len(self._pairs.ids(text))

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits at the last token of each pair: (pairs,)."""

        def sequences() -> Iterator[TokenSequence]:
            for pair in pairs:
                stop_if(cancelled)
                yield self._pairs.sequence(*pair, self.document_tokens)

        runs = in_runs(sequences(), lambda s: len(s.input_ids), self.segment_tokens)
        options = self.segment_tokens, lambda _: stop_if(cancelled)
        return np.concatenate(
            list(
                chain.from_iterable(
                    read_logits(self._model, run, *options) for run in runs
                )
            )
        )


def _name_in_classifier(name: str) -> str:
    """Our name for a sequence classifier's tensor: its head is ``score``, and its backbone may be ``model``."""
    if name.startswith("score."):
        return name.replace("score.", "binary_head.", 1)
    return canonical_name(name.removeprefix("model."))


CHUNK_TOKENS = 16
"""Tokens, over all rows, whose decays and states are held at a time: more would not
fit a processor's cache."""

# transformers' keys to mamba_ssm's, with the same defaults; those in "ssm_cfg" are
# arguments of `Mamba`.
_TRANSFORMERS: Final = {
    "hidden_size": "d_model", "num_hidden_layers": "n_layer", "vocab_size": "vocab_size",
    "layer_norm_epsilon": "norm_epsilon", "residual_in_fp32": "residual_in_fp32",
}  # fmt: skip
_TRANSFORMERS_SSM: Final = {
    "state_size": "d_state", "conv_kernel": "d_conv", "expand": "expand", "time_step_rank": "dt_rank",
    "use_bias": "bias", "use_conv_bias": "conv_bias",
}  # fmt: skip
_IGNORED: Final = frozenset(  # they set initial weights or choose a kernel
    "layer dt_min dt_max dt_init dt_scale dt_init_floor use_fast_path layer_idx device"
    " dtype".split()
)


class Mamba1Mixer(nn.Module):
    """The Mamba-1 layer: projection, causal convolution, selective scan, gate, projection, in plain torch.

    From "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (Gu and Dao
    2023, section 3, algorithm 2): a time step for each channel, and a decay for each
    number in a channel's state. Names and shapes of parameters are those of
    `mamba_ssm`'s `Mamba` and of transformers' `MambaModel`.
    """

    def __init__(self, config: "Mamba1Config") -> None:
        super().__init__()
        self.config, inner = config, config.d_inner
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
        """``u``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        config = self.config
        x, z = self.in_proj(u).chunk(2, dim=-1)
        x, conv_tail = self.kernels.convolve(self.conv1d, x, state.conv, sequence_index)
        dt, B, C = torch.split(
            self.x_proj(x), [config.dt_rank, config.d_state, config.d_state], dim=-1
        )
        weight, bias = self.dt_proj.weight.float(), self.dt_proj.bias.float()
        steps = F.softplus(
            F.linear(dt.float(), weight, bias).float()
        )  # (batch, tokens, d_inner)
        starts = (
            None
            if sequence_index is None
            else sequence_index.diff(dim=1, prepend=0 * sequence_index[:, :1])
        )
        y, ssm = self._scan(
            x.float(), steps, B.float(), C.float(), state.ssm.flatten(1, 2), starts
        )
        if at is not None:
            y, z = y[at], z[at]  # (units, d_inner)
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
        """Scan h = exp(step A) h + step B x, from 0 where ``starts``, (batch, tokens), is not 0; y = C h + D x.

        ``x`` and ``steps`` are (batch, tokens, d_inner), ``B`` and ``C`` (batch,
        tokens, d_state), and the state (batch, d_inner, d_state).
        """
        A = -torch.exp(self.A_log.float())
        found, width = [], max(1, CHUNK_TOKENS // len(x))
        for first in range(0, x.shape[1], width):
            of = slice(first, first + width)
            decays = torch.exp(
                steps[:, of, :, None] * A
            )  # (batch, chunk, d_inner, d_state)
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
        """Read the parsed object of a ``config.json`` in ``mamba_ssm``'s or transformers' layout."""
        if "d_model" not in config:
            if config.get("hidden_act", "silu") != "silu":
                raise ValueError(
                    f"hidden_act is {config['hidden_act']!r}; expected 'silu'"
                )
            ssm_cfg = {
                name: config[key]
                for key, name in _TRANSFORMERS_SSM.items()
                if key in config
            }
            config = {
                name: config[key]
                for key, name in _TRANSFORMERS.items()
                if key in config
            }
            config = {**config, "pad_vocab_size_multiple": 1, "ssm_cfg": ssm_cfg}
        ssm_cfg = config.get("ssm_cfg") or {}
        kept = {key: value for key, value in ssm_cfg.items() if key not in _IGNORED}
        for key in sorted(kept.keys() - {*_TRANSFORMERS_SSM.values()}):
            raise ValueError(
                f"ssm_cfg.{key} is not a key of mamba_ssm's Mamba-1 config.json;"
                " expected its keys only"
            )
        rank = kept.pop("dt_rank", "auto")
        read = super().from_dict({**config, "ssm_cfg": kept | {"layer": "Mamba2"}})
        assert isinstance(read, cls)
        return replace(read, dt_rank=-(-read.d_model // 16) if rank == "auto" else rank)

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write as ``config.json``, in the layout of ``mamba_ssm``."""
        names = _TRANSFORMERS_SSM.values()
        return super().to_dict() | {
            "ssm_cfg": (
                {"layer": "Mamba1"} | {name: getattr(self, name) for name in names}
            )
        }


def read_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read a ``config.json`` of Mamba-1 or Mamba-2, in ``mamba_ssm``'s or transformers' layout."""
    ssm_cfg = config.get("ssm_cfg") or {}
    if "d_model" in config and isinstance(ssm_cfg, Mapping):
        first = ssm_cfg.get("layer", "Mamba1") == "Mamba1"
    else:
        first = config.get("model_type") == "mamba"
    return Mamba1Config.from_dict(config) if first else read_mamba2_config(config)


RERANKER: Final = Layout(read_config, _name_in_classifier)
"""Our layout, `mamba_ssm`'s and transformers', for Mamba-1 and Mamba-2."""
