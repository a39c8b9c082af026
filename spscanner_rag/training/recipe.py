"""The numbers of a training run, read from a TOML file."""

import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train. The defaults are the paper's, for fine-tuning a pre-trained base (section 4.1).

    Parameters
    ----------
    steps : int, default 15000
        Optimizer steps.
    sequence_tokens : tuple of int, default (2048, 5120, 10240)
        Lengths of training sequences; each step draws one of them.
    sequences_per_step : int, default 64
        The effective batch.
    tokens_per_pass : int, default 16384
        Sequences of a step go through the model in passes of at most this many tokens (and at least one
        sequence): changes memory, not the result.
    learning_rate, final_learning_rate : float, default 1e-4 and 1e-5
        Peak and end of the cosine schedule.
    warmup_share : float, default 0.1
        Share of the steps with a linearly rising rate.
    betas : tuple of two floats, default (0.9, 0.95)
    weight_decay : float, default 0.01
        On matrices only: norms, biases and the decays ``A_log`` are left alone.
    gradient_clip : float, default 1.0
    dtype : "bfloat16" or "float32", default "bfloat16"
        Arithmetic of matrix products; weights and optimizer are float32.
    positive_weight : float, default 10.0
        Weight of a relevant sentence's loss; sentences that are not relevant have 1.
    ranking_weight : float, default 0.0
        Weight of a softmax cross-entropy over a sequence's sentences, beside the binary one.
    teacher : str, default ""
        `sentence-transformers` model whose cosines a second head learns; empty for none.
    teacher_weight : float, default 0.3
    teacher_documents : int, default 0
        Only the first so many documents of each source get teacher scores, which are the costly part; 0 all.
    random_place_share : float, default 0.0
        Share of sequences cut anywhere in the document instead of around a relevant sentence.
    source_smoothing, source_cap : float and int, default 0.7 and 3000
        A source with n questions is drawn with weight ``min(1, n / cap) ** smoothing``.
    source_weights : dict, default {}
        Factors on those weights by source name, for sources known to be noisy (0 leaves one out).
    held_out_sources : tuple of str, default ()
        Sources without a validation file: the tenth of their documents whose ``int(sha1(doc_id), 16)`` is a
        multiple of 10 is validated on instead of trained on.
    ema_decay : float, default 0.0
        Decay of the moving average of weights that is saved; 0 saves the last weights.
    vocab_size : int, default 16384
        Of the tokenizer, when a model is trained from nothing.
    reanchor_tokens : int, default 0
        Repeat the question after this many document tokens; 0 never. From nothing only: a base model keeps
        its own setting.
    lexical_match, lexical_prior : bool, default False
        The lexical channel. From nothing only, likewise.
    validate_every : int, default 500
        Steps between validations.
    validation_questions : int, default 40
        Per source, at most, at each validation; the last one takes ``final_validation_questions``.
    final_validation_questions : int, default 300
    save_every : int, default 100
        Steps between saved states, from which a run is resumed.
    seed : int, default 0
    """

    steps: int = 15000
    sequence_tokens: tuple[int, ...] = (2048, 5120, 10240)
    sequences_per_step: int = 64
    tokens_per_pass: int = 16384
    learning_rate: float = 1e-4
    final_learning_rate: float = 1e-5
    warmup_share: float = 0.1
    betas: tuple[float, ...] = (0.9, 0.95)
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    dtype: str = "bfloat16"
    positive_weight: float = 10.0
    ranking_weight: float = 0.0
    teacher: str = ""
    teacher_weight: float = 0.3
    teacher_documents: int = 0
    random_place_share: float = 0.0
    source_smoothing: float = 0.7
    source_cap: int = 3000
    source_weights: dict[str, float] | None = None
    held_out_sources: tuple[str, ...] = ()
    ema_decay: float = 0.0
    vocab_size: int = 16384
    reanchor_tokens: int = 0
    lexical_match: bool = False
    lexical_prior: bool = False
    validate_every: int = 500
    validation_questions: int = 40
    final_validation_questions: int = 300
    save_every: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no run can use."""
        positive = (
            "steps",
            "sequences_per_step",
            "tokens_per_pass",
            "save_every",
            "validate_every",
            "source_cap",
        )
        for name in positive:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not self.sequence_tokens or min(self.sequence_tokens) < 64:
            raise ValueError(
                f"sequence_tokens is {self.sequence_tokens}; expected lengths of at least 64 tokens"
            )
        if len(self.betas) != 2:
            raise ValueError(f"betas is {self.betas}; expected two numbers")
        if self.dtype not in ("bfloat16", "float32"):
            raise ValueError(f"dtype is {self.dtype!r}; expected 'bfloat16' or 'float32'")
        for name in ("warmup_share", "random_place_share", "ema_decay"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0 to below 1")

    def to_dict(self) -> dict[str, Any]:
        """All values, for the model card and the checkpoint."""
        return asdict(self)


def read_recipe(path: Path | None) -> Recipe:
    """Read a recipe; keys that the file leaves out keep their defaults.

    Raises
    ------
    ValueError
        If the file is not TOML, or has an unknown key or a value of the wrong type; names file and key.
    """
    if path is None:
        return Recipe()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a TOML file, got {error}") from None
    defaults = {field.name: field.default for field in fields(Recipe)}
    for key, value in values.items():
        if key not in defaults:
            raise ValueError(f"{path}: unknown key {key!r}; expected some of {', '.join(defaults)}")
        values[key] = _converted(value, defaults[key], f"{path}, {key}")
    return Recipe(**values)


def _converted(value: object, default: object, where: str) -> object:
    """The value in its field's type; whole numbers serve as floats and lists as tuples."""
    if isinstance(default, tuple) and isinstance(value, list) and value:
        example = default[0] if default else ""
        return tuple(_converted(item, example, where) for item in value)
    if default is None and isinstance(value, dict):
        return {name: _converted(factor, 1.0, f"{where}.{name}") for name, factor in value.items()}
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        expected = "a table" if default is None else type(default).__name__
        raise ValueError(f"{where}: got {value!r}, expected {expected}")
    return value
