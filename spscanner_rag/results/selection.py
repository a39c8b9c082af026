"""`Selection`, the checked options of every selection."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, Self, TypedDict, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.selection_options import (
    SelectionOption,
    option_group,
    options_of,
    selection_option,
)
from spscanner_rag.text.keep_scale import Keep, is_keep
from spscanner_rag.text.token_counts import CountTokens, check_counter

Order = Literal["document", "score"]

Prefer = Literal["newest"]

AlwaysKeep = Sequence[str] | Callable[[str], bool]
"""Regular expressions, or a function of a sentence."""

MINIMUM_OF_A_SHARE = 10
"""If ``top_k`` is a share of the sentences, at least this many are selected, as in the
original code."""

ELBOW_BOUNDS = (1, 50)
"""The fewest and the most sentences of ``top_k="elbow"``, if it names no others."""

_ELBOW = re.compile(r"elbow(?::([1-9]\d{0,8})-([1-9]\d{0,8}))?")


def is_integer(value: object) -> TypeGuard[int]:
    """True for a whole number of Python or numpy that is not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return value is None or (is_integer(value) and value >= 1)


def _is_number_of_neighbours(value: object) -> bool:
    return is_integer(value) and value >= 0


def _within_1(value: object) -> bool:
    is_number = is_integer(value) or isinstance(value, float | np.floating)
    return is_number and bool(0 <= value <= 1)  # type: ignore[operator]


def _is_share_or_none(value: object) -> bool:
    return value is None or _within_1(value)


def _is_top_k(value: object) -> bool:
    if isinstance(value, str):
        return _elbow_bounds(value) is not None
    is_share = _within_1(value) and 0 < value < 1  # type: ignore[operator]
    return is_share or _is_count(value)


def _is_counter(value: object) -> bool:
    check_counter(value)  # its errors say what is wrong with an encoding's name
    return True


def _is_order(value: object) -> bool:
    return isinstance(value, str) and value in get_args(Order)


def _is_preference(value: object) -> bool:
    return value is None or (isinstance(value, str) and value in get_args(Prefer))


def _can_keep(always_keep: object) -> bool:
    if not isinstance(always_keep, Sequence) or isinstance(always_keep, str):
        return always_keep is None or callable(always_keep)
    for pattern in always_keep:
        if not isinstance(pattern, str):
            return False
        try:
            re.compile(pattern)
        except re.error:
            return False
    return len(always_keep) > 0


class RuleArguments(TypedDict, total=False):
    """The rules of a selection, as keywords of `ScanResult.select` and ``context``."""

    always_keep: AlwaysKeep | None
    """Sentences in which one of these regular expressions is found, or for which the
    function returns true, are also kept, whatever their score, and before all others:
    dates, amounts, identifiers."""

    keep: Keep | None
    """How much is kept of what ``top_k`` allows: "strict" few sentences that are surely
    right, "balanced" the best balance, "generous" most of the right ones. It cuts at
    `ScanResult.relative_scores`, and nothing may be left."""

    prefer: Prefer | None
    """What comes first among sentences of nearly equal relevance: "newest" those of the
    latest date, and of one date the later ones, as for a fact that changed. See
    `spscanner_rag.results.recency`."""

    require_answer: float | None
    """The lowest probability that the text answers the query, from 0 to 1, at which
    anything is selected: see ``ScanResult.answerable``."""


@option_group
class SelectionRules:
    """The rules of a selection, which have the same name in every program.

    The fields of the frameworks' classes are made from these. A new rule is a field
    here and a keyword in `RuleArguments`.
    """

    always_keep: AlwaysKeep | None = selection_option(
        None,
        "Regular expressions: a sentence in which one is found is kept, whatever its"
        " score.",
        plain_kind=list[str] | None,
        is_valid=_can_keep,
        expected=r'a list of regular expressions, such as ["\\d{4}-\\d\\d"], a function'
        " of a sentence, or None",
    )
    keep: Keep | None = selection_option(
        None,
        "How much is kept: strict (few sentences, surely right), balanced, or generous"
        " (most of the right ones).",
        choices=get_args(Keep),
        is_valid=is_keep,
        expected='"strict", "balanced" or "generous", or None for no preset',
    )
    prefer: Prefer | None = selection_option(
        None,
        "newest: of sentences of nearly equal relevance, the newest comes first.",
        choices=get_args(Prefer),
        is_valid=_is_preference,
        expected='"newest", or None for the best first',
    )
    require_answer: float | None = selection_option(
        None,
        "Lowest probability, from 0 to 1, that a text answers the question; of other"
        " texts, nothing is selected.",
        lowest=0,
        highest=1,
        is_valid=_is_share_or_none,
        expected="a probability from 0 to 1, or None",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(SelectionRules):  # type: ignore[misc] # a group is frozen, too
    """The options of a selection, checked.

    Every program that offers a selection makes its own options from these fields: their
    names, types, bounds, defaults and meanings are in `SELECTION_OPTIONS`. Raises
    ``ValueError`` that begins with the name of the first bad one.

    In a selection from several texts, ``top_k`` and ``max_tokens`` hold for all of them
    together, and ``top_k_per_text`` is the maximum number of sentences of each, without
    neighbours.

    Examples
    --------
    >>> Selection(top_k=3, order="score").top_k
    3
    >>> Selection(threshold=1.5)
    Traceback (most recent call last):
    ValueError: threshold: got 1.5; expected a score from 0 to 1, or None: ...
    """

    top_k: float | str | None = selection_option(
        50,
        'Most sentences: a number, a share of all below 1 (at least 10), or "elbow" or'
        ' "elbow:5-30" (those above the steepest drop of the scores).',
        plain_kind=int | float | str | None,
        is_valid=_is_top_k,
        expected="an integer of at least 1, a share of the sentences between 0 and 1"
        ' (both excluded), "elbow" or "elbow:5-30", or None for all',
    )
    threshold: float | None = selection_option(
        None,
        "Lowest score, from 0 to 1, inclusive.",
        lowest=0,
        highest=1,
        is_valid=_is_share_or_none,
        expected="a score from 0 to 1, or None: a score is the sigmoid of a logit, so"
        " 0.5 stands for logit 0",
    )
    max_tokens: int | None = selection_option(
        None,
        "Token budget for everything that is returned, the best sentences first.",
        lowest=1,
        is_valid=_is_count,
        expected="an integer of at least 1, or None for no budget",
    )
    count_tokens: CountTokens | str | None = selection_option(
        None,
        "What the token budget counts: a tiktoken encoding such as o200k_base; default:"
        " the model's tokens.",
        plain_kind=str | None,
        is_valid=_is_counter,
        expected="a callable or the name of a tiktoken encoding",
    )
    context: int = selection_option(
        0,
        "Neighbours on each side of a sentence, on top of the most sentences.",
        lowest=0,
        is_valid=_is_number_of_neighbours,
        expected="the number of neighbours on each side, an integer of at least 0",
    )
    order: Order = selection_option(
        "document",
        "score: best first; document: as in the document.",
        choices=get_args(Order),
        is_valid=_is_order,
        expected='"document" or "score" (best first)',
    )
    merge: bool = selection_option(
        False,
        "Make one passage of each run of adjacent sentences.",
        is_valid=lambda value: isinstance(value, bool | np.bool_),
        expected="True or False",
    )
    diversity: float = selection_option(
        1.0,
        "From 0 to 1; below 1, sentences that repeat better ones are passed over.",
        lowest=0,
        highest=1,
        is_valid=_within_1,
        expected="a number from 0 to 1; 1 ignores whether sentences repeat each other",
    )
    top_k_per_text: int | None = selection_option(
        None,
        "Most sentences of each text, without neighbours.",
        lowest=1,
        of_several=True,
        is_valid=_is_count,
        expected="an integer of at least 1, or None for no limit",
    )

    def __post_init__(self) -> None:
        for name, option in SELECTION_OPTIONS.items():
            option.check(getattr(self, name))

    @classmethod
    def of(cls, options: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """Read every field from ``options``.

        A field has its own name there, or the one in ``names``, with which errors then
        begin.
        """
        values = {}
        for option in fields(cls):
            values[option.name] = options[names.get(option.name, option.name)]
        try:
            return cls(**values)
        except ValueError as error:
            name, colon, message = str(error).partition(":")
            raise ValueError(f"{names.get(name, name)}{colon}{message}") from None

    def keeps(self, sentence: str) -> bool:
        """True for a sentence that ``always_keep`` keeps, whatever its score."""
        if self.always_keep is None:
            return False
        if callable(self.always_keep):
            return bool(self.always_keep(sentence))
        return any(re.search(pattern, sentence) for pattern in self.always_keep)

    def limit(self, n_sentences: int, ranked_scores: NDArray[np.float64]) -> int:
        """Return how many of ``n_sentences`` ``top_k`` allows.

        ``ranked_scores`` are their scores, from the highest to the lowest. "elbow" ends
        at the steepest fall, the first of several. A share is read as the decimal that
        the caller wrote: 0.07 of 100 is 7, although the float times 100 is more.

        Examples
        --------
        >>> scores = np.array([0.9, 0.85, 0.2, 0.15])
        >>> Selection(top_k="elbow").limit(4, scores)
        2
        """
        if self.top_k is None:
            return n_sentences
        if isinstance(self.top_k, str):
            return _elbow(self.top_k, ranked_scores)
        if self.top_k >= 1:
            return min(int(self.top_k), n_sentences)
        share = math.ceil(Fraction(repr(float(self.top_k))) * n_sentences)
        return min(max(share, MINIMUM_OF_A_SHARE), n_sentences)


SELECTION_OPTIONS: dict[str, SelectionOption] = options_of(Selection)
"""The options of a selection by name, from which each program makes its own."""

SELECTION_RULES: dict[str, SelectionOption] = options_of(SelectionRules)
"""Those of them that are rules."""


def _elbow(top_k: str, ranked_scores: NDArray[np.float64]) -> int:
    """The number of sentences before the steepest fall within the bounds."""
    fewest, highest = _elbow_bounds(top_k) or ELBOW_BOUNDS
    falls = -np.diff(ranked_scores)[fewest - 1 : highest]
    if not len(falls):
        return min(highest, len(ranked_scores))
    return fewest + int(np.argmax(falls))


def _elbow_bounds(top_k: str) -> tuple[int, int] | None:
    """The bounds of ``"elbow"`` or ``"elbow:5-30"``, or None for other strings."""
    match = _ELBOW.fullmatch(top_k)
    if match is None:
        return None
    if match[1] is None:
        return ELBOW_BOUNDS
    fewest = int(match[1])
    highest = int(match[2])
    return (fewest, highest) if fewest <= highest else None
