"""The settings of a training run, and the TOML file that they are read from."""

import json
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_CHOICES = {
    "stage": ("evidence", "reranker", "embedder"),
    "schedule": ("cosine", "linear", "constant"),
    "dtype": ("bfloat16", "float32", "auto"),
    "rerank_unit": ("sentence", "chunk", "passage", "document"),
    "rerank_from": ("source", "document"),
    "embedder_loss": ("nt-xent", "kl"),
}
_LEAST = {
    1: (
        "steps sequences_per_step tokens_per_pass save_every validate_every"
        " validation_questions final_validation_questions source_cap"
    ),
    0: (
        "ranking_weight calibration_questions lexical_least_units rerank_negatives"
        " rerank_random"
    ),
}
_SHARES = (
    "warmup_share",
    "cooldown_share",
    "random_place_share",
    "unanswerable_share",
    "ema_decay",
)

MAY_CHANGE = frozenset(
    "steps cooldown_share dtype tokens_per_pass validate_every validation_questions "
    "final_validation_questions calibration_questions save_every".split()
)
"""Keys that may change when a run is resumed: those of its length, arithmetic,
reporting and saving."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The keys of a recipe.

    The text below each key is its row in the table of ``docs/training.md``.

    The defaults of the optimizer, its schedule and the effective batch are those of the
    paper for fine-tuning a pre-trained base (appendix D); those of ``steps`` and
    ``positive_weight`` are not from the paper.
    """

    stage: str = "evidence"
    """`"evidence"` trains a scanner; `"reranker"` a passage reranker (Mamba, or a
    transformer as `--base`); `"embedder"` a sentence-transformers model (as
    `--base`)."""
    steps: int = 15000
    """Optimizer steps. The paper trains for 15,625, its 1.3b model for 6,250."""
    sequence_tokens: tuple[int, ...] = (2048, 5120, 10240)
    """Lengths of training sequences.

    Each step draws one; a length listed twice is drawn twice as often.
    """
    sequences_per_step: int = 64
    """The effective batch size."""
    tokens_per_pass: int = 16384
    """Maximum tokens in a forward pass, unless a single sequence has more.

    Affects memory, not the result.
    """
    learning_rate: float = 1e-4
    final_learning_rate: float = 1e-5
    """The rate at the peak and at the end of the schedule."""
    schedule: str = "cosine"
    """How the rate falls after warm-up: `"cosine"`, `"linear"`, or `"constant"`:
    only in the `cooldown_share`."""
    cooldown_share: float = 0.2
    """Share of the steps, at the end, in which a constant rate falls, as 1 minus a
    square root."""
    warmup_share: float = 0.1
    """Share of the steps, at the start, in which the rate rises linearly."""
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    """AdamW's weight decay, for matrices only, and the norm to which larger
    gradients are clipped."""
    dtype: str = "bfloat16"
    """Arithmetic of matrix products: `"bfloat16"`, `"float32"`, or `"auto"`: the
    faster. Weights are float32."""
    ema_decay: float = 0.0
    """Decay of the moving average of the weights that is saved; 0 saves the last
    weights."""
    vocab_size: int = 16384
    """From scratch: vocabulary size."""
    reanchor_tokens: int = 0
    """From scratch: document tokens between repetitions of the question; 0 for none."""
    lexical_match: bool = False
    lexical_prior: bool = False
    lexical_surroundings: bool = False
    lexical_soft: bool = False
    """The lexical channel: question words, BM25, BM25 of the surrounding 3, 7 and 17
    sentences, like meaning."""
    lexical_least_units: int = 0
    """The lexical channel treats shorter documents as if they had this many
    sentences."""
    positive_weight: float = 10.0
    """Weight of a relevant sentence in the binary loss."""
    ranking_weight: float = 0.0
    """Weight of the softmax cross-entropy over a sequence's sentences."""
    random_place_share: float = 0.0
    """Share of sequences cut at a random place instead of around evidence."""
    unanswerable_share: float = 0.0
    """Share of sequences whose question has no answer in the document."""
    rerank_unit: str = "passage"
    """The unit that is ranked: `"passage"` (a paragraph), `"chunk"` (300 words),
    `"sentence"` or `"document"`."""
    rerank_negatives: int = 15
    rerank_random: int = 0
    """Passages without the answer, drawn from the nearest by BM25, and how many of
    them are random instead."""
    rerank_from: str = "source"
    """Where they are drawn from: all documents of the `"source"`, or the question's own
    `"document"`."""
    embedder_loss: str = "nt-xent"
    """`"nt-xent"` compares with all passages of a step; `"kl"` makes the softmax over a
    question's passages equal to that of their BM25 scores."""
    source_cap: int = 3000
    source_weights: dict[str, float] | None = None
    """A source of n questions is drawn with weight min(1, n / cap) ^ 0.7 times its
    factor; 0 leaves it out."""
    stratified: bool = False
    """Whether every step has each source in proportion to its weight, instead of on
    average."""
    held_out_sources: tuple[str, ...] = ()
    """Sources whose documents with `int(sha1(doc_id), 16) % 10 == 0` are kept for
    validation, not trained on."""
    validate_every: int = 500
    """Steps between validations."""
    validation_questions: int = 40
    final_validation_questions: int = 300
    """Maximum questions per source, in a validation during the run and at the end."""
    calibration_questions: int = 0
    """Maximum questions per source to calibrate the head on at the end, with whole
    documents; 0 for none."""
    keep_best: bool = False
    """Save the weights of the best validation instead of the last."""
    save_every: int = 100
    """Steps between saved states."""
    seed: int = 0
    """Determines the initial weights and the examples."""

    def __post_init__(self) -> None:
        """Refuse values that no run can use."""
        self._check_choices()
        self._check_numbers()
        self._check_negatives()
        self._check_lexical_channel()

    def _check_choices(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                expected = " or ".join(map(repr, choices))
                raise ValueError(f"{name} is {value!r}; expected {expected}")

    def _check_numbers(self) -> None:
        for least, names in _LEAST.items():
            for name in names.split():
                value = getattr(self, name)
                if value < least:
                    raise ValueError(f"{name} is {value}; expected at least {least}")
        for name in _SHARES:
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ValueError(
                    f"{name} is {value}; expected a number from 0 to below 1"
                )
        if min(self.sequence_tokens, default=0) < 64:
            raise ValueError(
                f"sequence_tokens is {self.sequence_tokens}; expected lengths of at"
                " least 64 tokens"
            )

    def _check_negatives(self) -> None:
        if self.rerank_random > self.rerank_negatives:
            raise ValueError(
                f"rerank_random is {self.rerank_random} and rerank_negatives is"
                f" {self.rerank_negatives}; expected at most as many random ones as"
                " negatives"
            )
        if self.embedder_loss == "kl" and not self.rerank_negatives:
            raise ValueError(
                'rerank_negatives is 0 with embedder_loss "kl"; expected at least 1,'
                " since a question's passages are compared"
            )
        if self.stage == "reranker" and not self.rerank_negatives:
            raise ValueError(
                "rerank_negatives is 0; expected at least 1, since a reranker compares"
                " passages"
            )

    def _check_lexical_channel(self) -> None:
        if self.stage != "evidence" and (self.lexical_match or self.lexical_prior):
            raise ValueError(
                f"lexical_match or lexical_prior is true, which stage {self.stage!r}"
                " does not use; expected false"
            )
        if self.lexical_surroundings and not self.lexical_prior:
            raise ValueError(
                "lexical_surroundings is true without lexical_prior; expected both, or"
                " the prior alone"
            )
        if self.lexical_soft and not (self.lexical_match and self.lexical_surroundings):
            raise ValueError(
                "lexical_soft is true without lexical_match, lexical_prior and"
                " lexical_surroundings; expected all four"
            )

    def difference(self, saved: dict[str, Any]) -> str | None:
        """Why a run with ``saved`` values cannot resume with these, or None.

        Unsaved keys had defaults.
        """
        for name in saved.keys() - {field.name for field in fields(self)}:
            return f"{name} was {json.dumps(saved[name])} and is no longer a key"
        for field in fields(self):
            value = getattr(self, field.name)
            before = saved.get(field.name, field.default)
            if field.name not in MAY_CHANGE and json.dumps(value) != json.dumps(before):
                return (
                    f"{field.name} was {json.dumps(before)} and is now"
                    f" {json.dumps(value)}"
                )
        return None


def read_recipe(path: Path | None) -> Recipe:
    """Read a recipe.

    Keys that the file leaves out keep their defaults; errors name the file and the key.
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
            raise ValueError(
                f"{path}: unknown key {key!r}; expected one of {', '.join(defaults)}"
            )
        values[key] = _converted(value, defaults[key], f"{path}, {key}")
    try:
        return Recipe(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _converted(value: object, default: object, where: str) -> object:
    """Convert a value to its field's type.

    An int may stand for a float, and a list becomes a tuple.
    """
    if isinstance(default, tuple) and isinstance(value, list) and value:
        example = default[0] if default else ""
        return tuple(_converted(item, example, where) for item in value)
    if default is None and isinstance(value, dict):
        return {
            name: _converted(factor, 1.0, f"{where}.{name}")
            for name, factor in value.items()
        }
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        expected = "a table" if default is None else type(default).__name__
        raise ValueError(f"{where}: got {value!r}, expected {expected}")
    return value
