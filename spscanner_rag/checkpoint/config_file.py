"""The model that a ``config.json`` describes: its configuration, and the names and shapes of its tensors.

All other modules use the keys and tensor names of ``mamba_ssm``; those of transformers (``model_type: mamba2``)
are translated here.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from spscanner_rag.checkpoint.file_access import CheckpointError
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import MATCH_CLASSES, SOFT_FEATURES, SOFT_SCORES, SURROUNDINGS

CONFIG: Final = "config.json"
PUBLISHED_VOCAB_SIZE: Final = 50277

HEAD_TENSORS: Final = ("binary_head.weight", "binary_head.bias")

# From transformers' keys to the fields of our configuration.
_TRANSFORMERS_REQUIRED: Final = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layer",
    "vocab_size": "vocab_size",
}
# The same, with the defaults of transformers' Mamba2Config, which differ from those of mamba_ssm.
_TRANSFORMERS_OPTIONAL: Final[dict[str, tuple[str, Any]]] = {
    "head_dim": ("headdim", 64),
    "state_size": ("d_state", 128),
    "layer_norm_epsilon": ("norm_epsilon", 1e-5),
    "expand": ("expand", 2),
    "conv_kernel": ("d_conv", 4),
    "n_groups": ("ngroups", 8),
    "use_bias": ("bias", False),
    "use_conv_bias": ("conv_bias", True),
    "residual_in_fp32": ("residual_in_fp32", True),
    "time_step_limit": ("dt_limit", (0.0, float("inf"))),
    "chunk_size": ("chunk_size", 256),
    "tie_word_embeddings": ("tie_embeddings", False),
}
_TRANSFORMERS_FIELDS: Final = _TRANSFORMERS_REQUIRED | {
    key: field for key, (field, _) in _TRANSFORMERS_OPTIONAL.items()
}


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Turn a ``ValueError`` about the content of a file into a `CheckpointError` that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def read_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read a ``config.json`` in the layout of ``mamba_ssm`` (with ``d_model``) or transformers (``hidden_size``).

    Raises ``ValueError``, which names the key, for another layout or a model that is not supported.
    """
    if "d_model" in config:
        return Mamba2Config.from_dict(config)
    if "hidden_size" in config:
        return _read_transformers_config(config)
    raise ValueError(
        "neither d_model (mamba_ssm's layout) nor hidden_size (transformers' layout) is there;"
        " expected the config.json of a Mamba-2 model"
    )


def canonical_name(name: str) -> str:
    """Return ``mamba_ssm``'s name of a tensor, given its name in either layout.

    transformers calls the embedding ``embeddings``, and saves a model without a language-model head without
    the prefix ``backbone.``.
    """
    if name.startswith(("embedding.", "embeddings.", "layers.", "norm_f.")):
        name = f"backbone.{name}"
    return name.replace("backbone.embeddings.", "backbone.embedding.", 1)


def tensor_shapes(
    config: Mamba2Config,
    *,
    match: bool = False,
    prior: bool = False,
    surroundings: bool = False,
    soft: bool = False,
    head: bool = True,
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of every tensor of a scanner, without allocating any.

    ``match``, ``prior``, ``surroundings`` and ``soft`` are the parts of the lexical channel, as in
    `ScannerSettings`. The shapes come layer by layer, so that an absurd number of layers costs nothing.
    """
    yield "backbone.embedding.weight", (config.padded_vocab_size, config.d_model)
    for layer in range(config.n_layer):
        yield f"backbone.layers.{layer}.norm.weight", (config.d_model,)
        for name, shape in _mixer_shapes(config):
            yield f"backbone.layers.{layer}.mixer.{name}", shape
    yield "backbone.norm_f.weight", (config.d_model,)
    if head:
        yield HEAD_TENSORS[0], (1, config.d_model)
        yield HEAD_TENSORS[1], (1,)
    if match:
        yield "match_embedding.weight", (MATCH_CLASSES, config.d_model)
    if prior:
        yield "lexical_prior.weight", (1, 1)
    if surroundings:
        yield "surroundings.weight", (SURROUNDINGS, config.d_model)
        yield "surroundings.bias", (SURROUNDINGS,)
    if soft:
        yield "soft_match.weight", (config.d_model, SOFT_FEATURES)
        yield "soft_prior.weight", (SOFT_SCORES, config.d_model)
        yield "soft_prior.bias", (SOFT_SCORES,)


def _mixer_shapes(config: Mamba2Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of one Mamba-2 mixer."""
    yield "in_proj.weight", (config.d_in_proj, config.d_model)
    yield "conv1d.weight", (config.conv_dim, 1, config.d_conv)
    if config.conv_bias:
        yield "conv1d.bias", (config.conv_dim,)
    yield "dt_bias", (config.nheads,)
    yield "A_log", (config.nheads,)
    yield "D", (config.d_inner if config.D_has_hdim else config.nheads,)
    if config.rmsnorm:
        yield "norm.weight", (config.d_inner,)
    yield "out_proj.weight", (config.d_model, config.d_inner)
    if config.bias:
        yield "in_proj.bias", (config.d_in_proj,)
        yield "out_proj.bias", (config.d_model,)


def _read_transformers_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read the ``config.json`` of transformers' ``Mamba2Model`` or ``Mamba2ForCausalLM``.

    Keys that its forward pass does not use are ignored, such as the ``norm_before_gate`` of some conversions:
    transformers always gates first. The gated norm has groups and the epsilon of the other norms
    (``models/mamba2/modeling_mamba2.py``, transformers 5.x).
    """
    if config.get("model_type") != "mamba2":
        raise ValueError(f"model_type is {config.get('model_type')!r}; expected 'mamba2'")
    missing = [key for key in _TRANSFORMERS_REQUIRED if key not in config]
    if missing:
        raise ValueError(f"{missing[0]} is missing; expected the keys of transformers' Mamba2Config")
    if config.get("quantization_config") is not None:
        raise ValueError(
            "quantization_config is set: quantised weights are not supported; expected no such key"
        )
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ValueError(f"hidden_act is {config['hidden_act']!r}; expected 'silu'")
    values = {key: default for key, (_, default) in _TRANSFORMERS_OPTIONAL.items()} | dict(config)
    values["time_step_limit"] = _time_step_limit(values["time_step_limit"])
    try:
        read = Mamba2Config(
            **{field: values[key] for key, field in _TRANSFORMERS_FIELDS.items()}, pad_vocab_size_multiple=1
        )
    except ValueError as error:
        raise ValueError(_with_transformers_key(str(error))) from None
    heads = config.get("num_heads", 128)
    if heads != read.nheads:
        raise ValueError(
            f"num_heads * head_dim is {heads} * {read.headdim};"
            f" expected expand * hidden_size = {read.d_inner}"
        )
    return read


def _time_step_limit(value: object) -> Any:  # noqa: ANN401 - whatever it is, Mamba2Config checks it
    """Undo the form in which transformers 5 writes infinity into JSON."""
    if not isinstance(value, list | tuple):
        return value
    unpacked = [v.get("__float__") if isinstance(v, Mapping) else v for v in value]
    return [float("inf") if v == "Infinity" else v for v in unpacked]


def _with_transformers_key(message: str) -> str:
    """Replace our key at the start of a message with the key in the file."""
    key, _, rest = message.partition(" ")
    fields = {field: name for name, field in _TRANSFORMERS_FIELDS.items()}
    return f"{fields.get(key.removeprefix('ssm_cfg.'), key)} {rest}"
