"""How a scanner reads documents: the object "spscanner" of ``config.json``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

FORMAT: Final = 1
"""The format of the object "spscanner"."""

_MOST_LEAST_UNITS: Final = 1_000_000  # a document has no more units, and logits for more lose their meaning
_MOST_TEXT_WEIGHT: Final = 100
_LARGEST_TOKENS: Final = 2**31 - 1

LEXICAL_PARTS: Final = {
    "match": "match embedding",
    "prior": "BM25 prior",
    "surroundings": "BM25 of the surroundings",
    "soft": "meaning of words",
}
"""The keys of the object "spscanner.lexical" that switch weights on, with their names for people."""


class CheckpointDefault:
    """The type of `CHECKPOINT_DEFAULT`, for arguments where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "CHECKPOINT_DEFAULT"


CHECKPOINT_DEFAULT: Final = CheckpointDefault()
"""As an argument: use the checkpoint's own setting."""


@dataclass(frozen=True)
class ScannerSettings:
    """How a scanner reads documents.

    Parameters
    ----------
    segmenter : {"sentence", "reference"}, default "sentence"
        How a document is cut into units.
    window_tokens : int, optional
        Document tokens per window; None: one pass however long.
    reanchor_tokens : int, optional
        Document tokens after which the question is read again, at the next unit; None: never.
    match, prior, surroundings, soft : bool, default False
        The parts of the lexical channel: match embeddings, a weight on the lexical prior, weights on the lexical
        scores of a unit's surroundings, and weights on matches by the meaning of words, which need the other three
        and a table of word vectors (keys of the object ``lexical``).
    training : dict
        What the weights were trained on and how; any JSON object.
    least_units : int, default 0
        The lexical channel treats a document with fewer units as if it had this many (key
        ``lexical.least_units``), at most 1,000,000.
    text_weight : float, default 0
        In a collection of texts, every logit of a text is lowered by this much of what the text as a whole scores
        less than the best text (key ``lexical.text_weight``), at most 100; see `text_match`. It needs the
        surroundings.

    Raises
    ------
    ValueError
        For a value of the wrong type or out of range; the message names the key of ``config.json``.
    """

    segmenter: Literal["sentence", "reference"] = "sentence"
    window_tokens: int | None = None
    reanchor_tokens: int | None = None
    match: bool = False
    prior: bool = False
    surroundings: bool = False
    training: dict[str, Any] = field(default_factory=dict)
    least_units: int = 0
    soft: bool = False
    text_weight: float = 0.0

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if self.segmenter not in ("sentence", "reference"):
            raise ValueError(f"spscanner.segmenter is {self.segmenter!r}; expected 'sentence' or 'reference'")
        for key in ("window_tokens", "reanchor_tokens"):
            value = getattr(self, key)
            if value is not None and (type(value) is not int or not 1 <= value <= _LARGEST_TOKENS):
                raise ValueError(
                    f"spscanner.{key} is {value!r}; expected null or a whole number of at least 1, at most"
                    f" {_LARGEST_TOKENS:,}"
                )
        for key, value in self.lexical.items():
            if type(value) is not bool:
                raise ValueError(f"spscanner.lexical.{key} is {value!r}; expected true or false")
        if type(self.least_units) is not int or not 0 <= self.least_units <= _MOST_LEAST_UNITS:
            raise ValueError(
                f"spscanner.lexical.least_units is {self.least_units!r}; expected a whole number of at least 0,"
                f" at most {_MOST_LEAST_UNITS:,}"
            )
        if type(self.text_weight) not in (int, float) or not 0 <= self.text_weight <= _MOST_TEXT_WEIGHT:
            raise ValueError(
                f"spscanner.lexical.text_weight is {self.text_weight!r}; expected a number of at least 0, at most"
                f" {_MOST_TEXT_WEIGHT}"
            )
        if self.text_weight and not self.surroundings:
            raise ValueError(
                "spscanner.lexical.text_weight is above 0 without lexical.surroundings; expected both"
            )
        if self.surroundings and not self.prior:
            raise ValueError("spscanner.lexical.surroundings is true without lexical.prior; expected both")
        if self.soft and not (self.match and self.surroundings):
            raise ValueError(
                "spscanner.lexical.soft is true without lexical.match, lexical.prior and lexical.surroundings;"
                " expected all four"
            )
        if not isinstance(self.training, dict):
            raise ValueError(f"spscanner.training is {self.training!r}; expected an object")

    @property
    def lexical(self) -> dict[str, bool]:
        """Which parts of the lexical channel are on."""
        return {key: getattr(self, key) for key in LEXICAL_PARTS}

    @property
    def lexical_names(self) -> list[str]:
        """Names for people of the parts of the lexical channel that are on."""
        names = [LEXICAL_PARTS[key] for key, on in self.lexical.items() if on]
        if names and self.least_units:
            names.append(f"short documents scored as {self.least_units} units")
        if self.text_weight:
            names.append(f"whole documents compared (weight {self.text_weight})")
        return names

    @classmethod
    def from_dict(cls, value: object) -> "ScannerSettings":
        """Read the parsed object "spscanner"; a ``ValueError`` for its format, keys or types names the key."""
        if not isinstance(value, Mapping):
            raise ValueError(f"spscanner is {value!r}; expected an object")
        number = value.get("format")
        if type(number) is not int or number < 1:
            raise ValueError(f"spscanner.format is {number!r}; expected {FORMAT}")
        if number > FORMAT:
            raise ValueError(
                f"spscanner.format is {number}, this version reads {FORMAT}: newer version needed;"
                " pip install --upgrade spscanner-rag"
            )
        lexical = value.get("lexical", {})
        if not isinstance(lexical, Mapping):
            raise ValueError(f"spscanner.lexical is {lexical!r}; expected an object")
        plain = ("segmenter", "window_tokens", "reanchor_tokens", "training")
        parts = (*LEXICAL_PARTS, "least_units", "text_weight")
        for where, given, known in (
            ("", value, ("format", *plain, "lexical")),
            ("lexical.", lexical, parts),
        ):
            unknown = [key for key in given if key not in known]
            if unknown:
                raise ValueError(
                    f"spscanner.{where}{unknown[0]}: unknown key; expected {', '.join(known)}: remove it"
                )
        if "segmenter" not in value:
            raise ValueError("spscanner.segmenter is missing; expected 'sentence' or 'reference'")
        return cls(**{key: value[key] for key in plain if key in value}, **lexical)

    def to_dict(self) -> dict[str, Any]:
        """Return the object to write; `from_dict` reads it back."""
        return {
            "format": FORMAT,
            "segmenter": self.segmenter,
            "window_tokens": self.window_tokens,
            "reanchor_tokens": self.reanchor_tokens,
            "lexical": self.lexical | {"least_units": self.least_units, "text_weight": self.text_weight},
            "training": self.training,
        }
