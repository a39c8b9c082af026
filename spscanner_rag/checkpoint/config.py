"""The content of ``config.json``: the model's shape, and how it reads texts.

The second is the object "spscanner".
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from spscanner_rag.checkpoint.digests import DIGESTS
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
from spscanner_rag.text.keep_scale import KeepScale

HEAD_TENSORS: Final = ("binary_head.weight", "binary_head.bias")

_TRANSFORMERS: Final[dict[str, tuple[str, Any]]] = {
    "hidden_size": ("d_model", None),
    "num_hidden_layers": ("n_layer", None),
    "vocab_size": ("vocab_size", None),
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
"""From transformers' keys to the fields of our configuration, with the defaults of
its Mamba2Config, which differ from mamba_ssm's. A key without a default is required."""


def read_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read a ``config.json`` in ``mamba_ssm``'s or transformers' layout.

    ``ValueError`` names the key.
    """
    if "d_model" in config:
        return Mamba2Config.from_dict(config)
    if "hidden_size" in config:
        return _read_transformers_config(config)
    raise ValueError(
        "neither d_model (mamba_ssm's layout) nor hidden_size (transformers' layout) is"
        " there; expected the config.json of a Mamba-2 model"
    )


def canonical_name(name: str) -> str:
    """Return ``mamba_ssm``'s name of a tensor, given its name in either layout."""
    if name.startswith(("embedding.", "embeddings.", "layers.", "norm_f.")):
        name = f"backbone.{name}"
    return name.replace("backbone.embeddings.", "backbone.embedding.", 1)


def _read_transformers_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read transformers' layout.

    Ignore keys that its forward pass does not use, such as ``norm_before_gate``.
    """
    if config.get("model_type") != "mamba2":
        raise ValueError(
            f"model_type is {config.get('model_type')!r}; expected 'mamba2'"
        )
    if config.get("quantization_config") is not None:
        raise ValueError(
            "quantization_config is set: quantised weights are not supported; expected"
            " no such key"
        )
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ValueError(f"hidden_act is {config['hidden_act']!r}; expected 'silu'")
    values = {
        field: config.get(key, default)
        for key, (field, default) in _TRANSFORMERS.items()
    }
    # transformers 5 writes infinity as an object
    if isinstance(limit := values["dt_limit"], list | tuple):
        unpacked = [v.get("__float__") if isinstance(v, Mapping) else v for v in limit]
        values["dt_limit"] = [float("inf") if v == "Infinity" else v for v in unpacked]
    mamba2_config = Mamba2Config(**values, pad_vocab_size_multiple=1)
    heads = config.get("num_heads", 128)
    if heads != mamba2_config.nheads:
        raise ValueError(
            f"num_heads * head_dim is {heads} * {mamba2_config.headdim};"
            f" expected expand * hidden_size = {mamba2_config.d_inner}"
        )
    return mamba2_config


FORMAT: Final = 1  # the format of the object "spscanner"
# no document has more units, and logits for more would mean nothing
_MOST_LEAST_UNITS: Final = 1_000_000
_MOST_TEXT_WEIGHT: Final = 100
_LARGEST_TOKENS: Final = 2**31 - 1

LEXICAL_PARTS: Final = {
    "match": "match embedding",
    "prior": "BM25 prior",
    "surroundings": "BM25 of the surroundings",
    "soft": "meaning of words",
}
"""The keys of the object "spscanner.lexical" that switch weights on, each with a
name for people."""


class CheckpointDefault:
    """The type of `CHECKPOINT_DEFAULT`, for arguments whose None means something."""

    def __repr__(self) -> str:
        return "CHECKPOINT_DEFAULT"


# as an argument: use the checkpoint's own setting
CHECKPOINT_DEFAULT: Final = CheckpointDefault()


@dataclass(frozen=True)
class ScannerSettings:
    """The settings with which a scanner reads documents.

    A ``ValueError`` names the key of ``config.json``.

    Examples
    --------
    >>> settings = ScannerSettings(reanchor_tokens=5000)
    >>> settings.segmenter, settings.window_tokens
    ('sentence', None)
    >>> ScannerSettings(window_tokens=0)
    Traceback (most recent call last):
    ValueError: spscanner.window_tokens is 0; expected null or a whole number of ...
    """

    # how a document is cut into units
    segmenter: Literal["sentence", "reference"] = "sentence"
    # document tokens per window; None: one pass over any length
    window_tokens: int | None = None
    # document tokens after which the question is read again; None: never
    reanchor_tokens: int | None = None
    # match embeddings; this and the next two are parts of the lexical channel
    match: bool = False
    prior: bool = False  # a weight on the lexical prior
    surroundings: bool = False  # weights on the lexical scores of a unit's surroundings
    # what the weights were trained on; any JSON
    training: dict[str, Any] = field(default_factory=dict)
    # the lexical channel treats a document with fewer units as if it had this many
    least_units: int = 0
    # weights on matches by meaning, which need the other parts and word vectors
    soft: bool = False
    text_weight: float = 0.0
    """In a collection, every logit of a text is lowered by this times the difference
    of the best text's score and the text's own; see `text_scores`. It needs the
    surroundings."""
    # weights of an encoder's cosines, exactly if there is an encoder
    meaning: MeaningWeights | None = None
    # sizes of a scan over sentences, which needs an encoder and the soft channel
    sentence_scan: SentenceScanShape | None = None
    # what turns logits into scores to cut at; None: presets are refused
    keep: KeepScale | None = None

    def __post_init__(self) -> None:
        right = self.segmenter in ("sentence", "reference")
        _expect(right, "segmenter", self.segmenter, "'sentence' or 'reference'")
        for key, tokens in (
            ("window_tokens", self.window_tokens),
            ("reanchor_tokens", self.reanchor_tokens),
        ):
            right = tokens is None or (
                type(tokens) is int and 1 <= tokens <= _LARGEST_TOKENS
            )
            _expect(
                right,
                key,
                tokens,
                f"null or a whole number of at least 1, at most {_LARGEST_TOKENS:,}",
            )
        for key, on in self.lexical.items():
            _expect(type(on) is bool, f"lexical.{key}", on, "true or false")
        units = self.least_units
        weight = self.text_weight
        right = type(units) is int and 0 <= units <= _MOST_LEAST_UNITS
        expected_units = f"a whole number of at least 0, at most {_MOST_LEAST_UNITS:,}"
        _expect(right, "lexical.least_units", units, expected_units)
        right = type(weight) in (int, float) and 0 <= weight <= _MOST_TEXT_WEIGHT
        _expect(
            right,
            "lexical.text_weight",
            weight,
            f"a number of at least 0, at most {_MOST_TEXT_WEIGHT}",
        )
        _expect(isinstance(self.training, dict), "training", self.training, "an object")
        for key, setting, needed in (
            ("text_weight", self.text_weight, ("surroundings",)),
            ("surroundings", self.surroundings, ("prior",)),
            ("soft", self.soft, ("match", "prior", "surroundings")),
        ):
            if setting and not all(getattr(self, name) for name in needed):
                others = " and ".join(f"lexical.{name}" for name in needed)
                raise ValueError(
                    f"spscanner.lexical.{key} is {str(setting).lower()} without"
                    f" {others}; expected all"
                )

        if self.sentence_scan and not (self.soft and self.meaning):
            raise ValueError(
                "spscanner.sentence_scan is there without lexical.soft and meaning;"
                " expected all three"
            )

    @property
    def lexical(self) -> dict[str, bool]:
        """The parts of the lexical channel, true for those that are on."""
        return {key: getattr(self, key) for key in LEXICAL_PARTS}

    @classmethod
    def from_dict(cls, value: object) -> "ScannerSettings":
        """Read the parsed object "spscanner".

        A ``ValueError`` for its format, keys or types names the key.
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"spscanner is {value!r}; expected an object")
        number = value.get("format")
        if type(number) is not int or number < 1:
            raise ValueError(f"spscanner.format is {number!r}; expected {FORMAT}")
        if number > FORMAT:
            raise ValueError(
                f"spscanner.format is {number}, this version reads {FORMAT}: newer"
                " version needed; update the clone that spscanner-rag was installed"
                " from, and install it again"
            )
        plain = ("segmenter", "window_tokens", "reanchor_tokens", "training")
        _checked_object(
            value,
            "spscanner",
            ("format", *plain, "lexical", "meaning", "sentence_scan", "keep", DIGESTS),
        )
        parts = (*LEXICAL_PARTS, "least_units", "text_weight")
        lexical = _checked_object(value.get("lexical", {}), "spscanner.lexical", parts)
        if "segmenter" not in value:
            raise ValueError(
                "spscanner.segmenter is missing; expected 'sentence' or 'reference'"
            )
        meaning = value.get("meaning")
        if meaning is not None:
            names = [weight.name for weight in fields(MeaningWeights)]
            meaning = MeaningWeights(
                **_checked_object(meaning, "spscanner.meaning", names)
            )
        scan = value.get("sentence_scan")
        if scan is not None:
            names = [size.name for size in fields(SentenceScanShape)]
            scan = SentenceScanShape(
                **_checked_object(scan, "spscanner.sentence_scan", names)
            )
        keep = value.get("keep")
        if keep is not None:
            names = [weight.name for weight in fields(KeepScale)]
            keep = KeepScale(**_checked_object(keep, "spscanner.keep", names))
        return cls(
            **{key: value[key] for key in plain if key in value},
            **lexical,
            meaning=meaning,
            sentence_scan=scan,
            keep=keep,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write, which `from_dict` reads back."""
        optional = {}
        if self.meaning is not None:
            optional["meaning"] = asdict(self.meaning)
        if self.sentence_scan is not None:
            optional["sentence_scan"] = asdict(self.sentence_scan)
        if self.keep is not None:
            optional["keep"] = asdict(self.keep)
        return {
            "format": FORMAT,
            "segmenter": self.segmenter,
            "window_tokens": self.window_tokens,
            "reanchor_tokens": self.reanchor_tokens,
            "lexical": (
                self.lexical
                | {
                    "least_units": self.least_units,
                    "text_weight": self.text_weight,
                }
            ),
            **optional,
            "training": self.training,
        }


def _checked_object(
    value: object, where: str, keys: Sequence[str]
) -> Mapping[str, Any]:
    """Return the value if it is an object with known keys.

    Else raise ``ValueError`` with the place or the key.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is {value!r:.60}; expected an object")
    unknown = [key for key in value if key not in keys]
    if unknown:
        raise ValueError(
            f"{where}.{unknown[0]}: unknown key; expected {', '.join(keys)}: remove it"
        )
    return value


def _expect(right: bool, key: str, value: object, expected: str) -> None:
    if not right:
        raise ValueError(f"spscanner.{key} is {value!r}; expected {expected}")


def lexical_names(settings: ScannerSettings) -> list[str]:
    """Readable names of the parts of the lexical channel that are on."""
    names = [LEXICAL_PARTS[key] for key, on in settings.lexical.items() if on]
    if names and settings.least_units:
        names.append(f"short documents scored as {settings.least_units} units")
    if settings.text_weight:
        names.append(f"whole documents compared (weight {settings.text_weight})")
    return names
