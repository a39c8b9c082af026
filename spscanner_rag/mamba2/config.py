"""The shape of a Mamba-2 backbone, as ``config.json`` of ``mamba_ssm`` has it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

# The keys of "ssm_cfg" (arguments of mamba_ssm's `Mamba2`), and the other keys, that
# are fields of `Mamba2Config`.
_SSM_FIELDS: Final = (
    "d_state d_conv expand headdim ngroups D_has_hdim rmsnorm norm_before_gate dt_limit"
    " bias conv_bias chunk_size"
).split()
_TOP_FIELDS: Final = (
    "d_model n_layer vocab_size pad_vocab_size_multiple rms_norm residual_in_fp32"
    " tie_embeddings norm_epsilon"
).split()

# Keys that are read elsewhere, set initial weights, choose a kernel, or are
# descriptions that other tools add. They do not change what trained weights compute.
_SSM_IGNORED: Final = frozenset(
    "layer d_ssm "  # read by `_refuse_other_layers`
    "conv_init A_init_range dt_min dt_max dt_init_floor use_mem_eff_path layer_idx"
    " process_group "
    "sequence_parallel device dtype".split()
)
_TOP_IGNORED: Final = frozenset(
    "attn_layer_idx attn_cfg d_intermediate "  # read by `_refuse_other_layers`
    "ssm_cfg fused_add_norm initializer_cfg "
    "spscanner "  # read by `spscanner_rag.checkpoint`
    "architectures dtype model_type torch_dtype transformers_version _name_or_path "
    "bos_token_id eos_token_id pad_token_id".split()
)

# Other sizes are compared with the tensors in the files, but no tensor has these.
# Kernels hold a chunk in fast memory; a time step of 1,000 empties any state; the
# limits of time steps must fit float32.
_LARGEST_CHUNK: Final = 2**16
_LARGEST_LOW: Final = 1e3
_LARGEST_HIGH: Final = 3e38


@dataclass(frozen=True)
class Mamba2Config:
    """Sizes and switches of a Mamba-2 backbone.

    For an unusable value, ``ValueError`` names the key.

    Names and defaults: ``mamba_ssm/models/config_mamba.py`` and ``modules/mamba2.py``
    of state-spaces/mamba.
    """

    mixer: ClassVar[Any] = None  # the class of its layers, if it is not `Mamba2Mixer`
    d_model: int  # width of the residual stream
    n_layer: int
    vocab_size: int  # token ids are below this number
    # the embedding has `vocab_size` rows, rounded up to a multiple of this
    pad_vocab_size_multiple: int = 8
    rms_norm: bool = True  # RMS norm before each block; layer norm is not supported
    # keep the residual stream in float32, whatever the weights' dtype
    residual_in_fp32: bool = True
    # of the language-model head, which is never computed here
    tie_embeddings: bool = True
    # added to the mean square in every RMS norm; `mamba_ssm` always uses 1e-5
    norm_epsilon: float = 1e-5
    d_state: int = 128  # size of the state of one channel
    d_conv: int = 4  # width of the causal convolution, in tokens
    expand: int = 2  # d_inner = expand * d_model
    headdim: int = 64  # channels per head
    # groups of heads that share B and C, and of channels of the gated RMS norm
    ngroups: int = 1
    D_has_hdim: bool = False  # one skip weight per channel instead of one per head
    # gated RMS norm after the state space; else the gate only multiplies the output
    rmsnorm: bool = True
    # normalize first and gate then, instead of the other way round
    norm_before_gate: bool = False
    # the time step is clamped to this after its softplus
    dt_limit: tuple[float, float] = (
        0.0,
        math.inf,
    )
    bias: bool = False  # in `in_proj` and `out_proj`
    conv_bias: bool = True
    # tokens per chunk of the fused kernels; changes only the order of sums
    chunk_size: int = 256

    def __post_init__(self) -> None:
        """Refuse invalid values in a message with the key of ``config.json``."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and (type(value) is not int or value < 1):
                raise ValueError(
                    f"{_key(field.name)} is {value!r}; expected a whole number of at"
                    " least 1"
                )
            if field.type is bool and type(value) is not bool:
                raise ValueError(
                    f"{_key(field.name)} is {value!r}; expected true or false"
                )
        if (
            type(self.norm_epsilon) not in (int, float)
            or not 0.0 <= self.norm_epsilon < 1.0
        ):
            raise ValueError(
                f"norm_epsilon is {self.norm_epsilon!r}; expected a number from 0 to"
                " below 1"
            )
        object.__setattr__(self, "norm_epsilon", float(self.norm_epsilon))
        object.__setattr__(self, "dt_limit", _checked_dt_limit(self.dt_limit))
        if not self.rms_norm:
            raise ValueError(
                "rms_norm is false: layer norm is not supported; expected true"
            )
        if self.chunk_size > _LARGEST_CHUNK:
            raise ValueError(
                f"ssm_cfg.chunk_size is {self.chunk_size}; expected at most"
                f" {_LARGEST_CHUNK}"
            )
        if self.d_inner % self.headdim:
            raise ValueError(
                f"ssm_cfg.headdim is {self.headdim}; expected a divisor of expand *"
                f" d_model = {self.d_inner}"
            )
        if self.nheads % self.ngroups:
            raise ValueError(
                f"ssm_cfg.ngroups is {self.ngroups}; expected a divisor of the"
                f" {self.nheads} heads (expand * d_model / headdim)"
            )

    @property
    def d_inner(self) -> int:
        """Channels of the state space: ``expand * d_model``."""
        return self.expand * self.d_model

    @property
    def nheads(self) -> int:
        """Heads of one layer: ``d_inner / headdim``."""
        return self.d_inner // self.headdim

    @property
    def conv_dim(self) -> int:
        """Channels of the convolution, which runs over x, B and C."""
        return self.d_inner + 2 * self.ngroups * self.d_state

    @property
    def d_in_proj(self) -> int:
        """Rows of ``in_proj``: the gate z, then x, B, C, then a time step per head."""
        return self.d_inner + self.conv_dim + self.nheads

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the embedding."""
        multiple = self.pad_vocab_size_multiple
        return -(-self.vocab_size // multiple) * multiple

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> "Mamba2Config":
        """Read the parsed object of a ``config.json``.

        Keys that do not affect the output are ignored.

        ``ValueError`` names a key with which the output would differ from the
        original's: Mamba-1 (a missing ``ssm_cfg.layer``), attention layers,
        ``d_intermediate`` above 0, ``d_ssm``, layer norm, unknown keys.
        """
        for key in ("d_model", "n_layer", "vocab_size"):
            if key not in config:
                raise ValueError(
                    f"{key} is missing; expected the keys of mamba_ssm's config.json"
                )
        ssm_cfg = config.get("ssm_cfg") or {}
        if not isinstance(ssm_cfg, Mapping):
            raise ValueError(f"ssm_cfg is {ssm_cfg!r}; expected an object")
        _refuse_other_layers(config, ssm_cfg)
        for prefix, section, section_fields, ignored in (
            ("", config, _TOP_FIELDS, _TOP_IGNORED),
            ("ssm_cfg.", ssm_cfg, _SSM_FIELDS, _SSM_IGNORED),
        ):
            # these might change the output
            for key in sorted(section.keys() - ignored - set(section_fields)):
                expected = f"expected {', '.join(section_fields)}"
                raise ValueError(
                    f"{prefix}{key} is not a key of mamba_ssm's Mamba-2 config.json;"
                    f" {expected}"
                )
        top = {key: config[key] for key in _TOP_FIELDS if key in config}
        return cls(
            **top, **{key: ssm_cfg[key] for key in _SSM_FIELDS if key in ssm_cfg}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write as ``config.json``, as ``mamba_ssm`` has it."""
        ssm_cfg = {"layer": "Mamba2"} | {
            key: getattr(self, key) for key in _SSM_FIELDS if key != "dt_limit"
        }
        if self.dt_limit != (0.0, math.inf):
            ssm_cfg["dt_limit"] = list(self.dt_limit)
        fixed = {
            "d_intermediate": 0,
            "attn_layer_idx": [],
            "attn_cfg": {},
            "fused_add_norm": True,
        }
        config = (
            {key: getattr(self, key) for key in _TOP_FIELDS}
            | {"ssm_cfg": ssm_cfg}
            | fixed
        )
        if self.norm_epsilon == 1e-5:  # mamba_ssm has no such key
            del config["norm_epsilon"]
        return config


def _key(field: str) -> str:
    """The key of a field in ``config.json``."""
    return f"ssm_cfg.{field}" if field in _SSM_FIELDS else field


def _refuse_other_layers(config: Mapping[str, Any], ssm_cfg: Mapping[str, Any]) -> None:
    layer = ssm_cfg.get("layer", "missing, which means Mamba-1")
    if layer in ("Mamba1", "missing, which means Mamba-1"):
        raise ValueError(
            f"ssm_cfg.layer is {layer}: Mamba-1 is not supported; expected Mamba2"
        )
    if layer != "Mamba2":
        raise ValueError(
            f"ssm_cfg.layer is {layer!r}: not a supported kind of layer; expected"
            " Mamba2"
        )
    for key, value, supported, what in (
        ("ssm_cfg.d_ssm", ssm_cfg.get("d_ssm"), None, "channels without a state space"),
        ("attn_layer_idx", config.get("attn_layer_idx") or [], [], "attention layers"),
        ("d_intermediate", config.get("d_intermediate") or 0, 0, "MLP layers"),
    ):
        if value != supported:
            raise ValueError(
                f"{key} is {value!r}: {what} are not supported; expected {supported}"
            )


def _checked_dt_limit(value: object) -> tuple[float, float]:
    """Return two numbers, ``0 <= low <= high``, of which the second may be infinite."""
    if (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(type(v) in (int, float) for v in value)
    ):
        low, high = value
        if (
            0 <= low <= _LARGEST_LOW
            and low <= high
            and (high <= _LARGEST_HIGH or high == math.inf)
        ):
            return float(low), float(high)
    raise ValueError(
        f"ssm_cfg.dt_limit is {value!r}; expected two numbers, 0 <= lowest <= highest,"
        f" the lowest at most {_LARGEST_LOW:,.0f}"
    )
