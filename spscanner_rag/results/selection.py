"""`Selection`, the checked arguments of every selection, and the ranking of sentences and documents."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, Self, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import index_words
from spscanner_rag.results.selection_options import (
    SelectionOption,
    options_of,
    selection_option,
)
from spscanner_rag.text.token_counts import CountTokens, check_counter

Order = Literal["document", "score"]
Aggregation = Literal["max", "mean", "mean_top", "sum", "logsumexp", "first", "long"]

AlwaysKeep = (
    Sequence[str] | Callable[[str], bool]
)  # regular expressions, or a function of a sentence

# If ``top_k`` is a share of the sentences, at least this many are kept, as in the
# original code.
MINIMUM_OF_A_SHARE = 10

ELBOW_BOUNDS = (
    1,
    50,
)  # the fewest and the most sentences of `top_k="elbow"`, where it names no others
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
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
        least=0,
        most=1,
        is_valid=_is_share_or_none,
        expected="a score from 0 to 1, or None: a score is the sigmoid of a logit, so"
        " 0.5 stands for logit 0",
    )
    max_tokens: int | None = selection_option(
        None,
        "Token budget for everything that is returned, the best sentences first.",
        least=1,
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
        least=0,
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
        least=0,
        most=1,
        is_valid=_within_1,
        expected="a number from 0 to 1; 1 ignores whether sentences repeat each other",
    )
    top_k_per_text: int | None = selection_option(
        None,
        "Most sentences of each text, without neighbours.",
        least=1,
        of_several=True,
        is_valid=_is_count,
        expected="an integer of at least 1, or None for no limit",
    )
    always_keep: AlwaysKeep | None = selection_option(
        None,
        "Regular expressions: a sentence in which one is found is kept, whatever its"
        " score.",
        plain_kind=list[str] | None,
        is_valid=_can_keep,
        expected=r'a list of regular expressions, such as ["\\d{4}-\\d\\d"], a function'
        " of a sentence, or None",
    )
    require_answer: float | None = selection_option(
        None,
        "Lowest probability, from 0 to 1, that a text answers the question; of other"
        " texts, nothing is selected.",
        least=0,
        most=1,
        is_valid=_is_share_or_none,
        expected="a probability from 0 to 1, or None",
    )

    def __post_init__(self) -> None:
        for name, option in SELECTION_OPTIONS.items():
            option.check(getattr(self, name))

    @classmethod
    def of(cls, options: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """Read every field from ``options`` under its own name, or the one in ``names``; errors begin with it."""
        try:
            return cls(
                **{
                    own.name: options[names.get(own.name, own.name)]
                    for own in fields(cls)
                }
            )
        except ValueError as error:
            field, colon, rest = str(error).partition(":")
            raise ValueError(f"{names.get(field, field)}{colon}{rest}") from None

    def keeps(self, sentence: str) -> bool:
        """True for a sentence that is kept whatever its score: it matches ``always_keep``."""
        if self.always_keep is None or callable(self.always_keep):
            return self.always_keep is not None and bool(self.always_keep(sentence))
        return any(re.search(pattern, sentence) for pattern in self.always_keep)

    def limit(self, n_sentences: int, ranked_scores: NDArray[np.float64]) -> int:
        """Return how many of ``n_sentences`` ``top_k`` allows, given their scores from the highest to the lowest.

        "elbow" ends at the steepest fall, the first of several. A share is read as the
        decimal that the caller wrote: 0.07 of 100 is 7, although the float times 100 is
        more.
        """
        if self.top_k is None:
            return n_sentences
        if isinstance(self.top_k, str):
            least, most = _elbow_bounds(self.top_k) or ELBOW_BOUNDS
            falls = -np.diff(ranked_scores)[least - 1 : most]
            return (
                least + int(np.argmax(falls))
                if len(falls)
                else min(most, len(ranked_scores))
            )
        if self.top_k >= 1:
            return min(int(self.top_k), n_sentences)
        share = math.ceil(Fraction(repr(float(self.top_k))) * n_sentences)
        return min(max(share, MINIMUM_OF_A_SHARE), n_sentences)


SELECTION_OPTIONS: dict[str, SelectionOption] = options_of(Selection)
"""The options of a selection by name, from which each program makes its own."""


def sigmoid(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Score of each logit, ``1 / (1 + exp(-logit))`` in float64, without overflow at either end."""
    values = logits.astype(np.float64)
    tail = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, tail) / (1.0 + tail), dtype=np.float64)


def rank(logits: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Sentence indices from the highest logit to the lowest.

    Among equal ones the earlier sentence first.
    """
    return np.argsort(-logits, kind="stable").astype(np.int64)


def _elbow_bounds(top_k: str) -> tuple[int, int] | None:
    """The bounds of ``"elbow"`` or ``"elbow:5-30"``; None for any other string."""
    match = _ELBOW.fullmatch(top_k)
    if match is None:
        return None
    least, most = (int(match[1]), int(match[2])) if match[1] else ELBOW_BOUNDS
    return (least, most) if least <= most else None


def diverse(
    texts: Sequence[str],
    scores: NDArray[np.float64],
    candidates: NDArray[np.int64],
    most: int,
    diversity: float,
) -> NDArray[np.int64]:
    """Pick texts by maximal marginal relevance (Carbonell and Goldstein, 1998): (picks,), in the order of picking.

    The next pick of ``candidates``, best first, has the largest diversity * score - (1
    - diversity) * (its largest cosine with a pick); vectors have each stem once,
    weighted by rarity as in BM25. Time: picks times words.
    """
    words, n = index_words(texts), len(texts)
    stem_of = np.zeros(len(words.vocabulary), np.int64)
    for stem, numbers in enumerate(words.of_stem.values()):
        stem_of[np.asarray(numbers, np.int64)] = stem
    own = words.postings
    of_posting = np.repeat(stem_of[own.words], np.diff(own.stops))
    pairs = np.unique(
        of_posting * max(n, 1) + own.units
    )  # each stem of each text once, sorted by stem
    stems, units = pairs // max(n, 1), pairs % max(n, 1)
    frequency = np.bincount(stems, minlength=len(words.of_stem))
    weights = (
        np.log1p((n - frequency + 0.5) / (frequency + 0.5))[stems] ** 2
    )  # (pairs,)
    lengths = np.sqrt(
        np.maximum(np.bincount(units, weights, minlength=n), 1e-12)
    )  # (texts,)
    values = diversity * scores[candidates]
    repeated = np.zeros(len(candidates))
    picks: list[int] = []
    while len(picks) < min(most, len(candidates)):
        place = int(np.argmax(values - (1 - diversity) * repeated))
        pick = int(candidates[place])
        picks.append(pick)
        values[place] = -np.inf
        shared = np.zeros(len(frequency), bool)
        shared[stems[units == pick]] = True
        products = np.bincount(units, weights * shared[stems], minlength=n)
        repeated = np.maximum(
            repeated, (products / (lengths * lengths[pick]))[candidates]
        )
    return np.array(picks, np.int64)


def document_score(
    logits: NDArray[np.floating], aggregation: Aggregation = "max", *, top: int = 3
) -> float:
    """Score a document by its sentences' logits, (sentences,).

    Comparable for one question scored in the same way.

    ``aggregation`` is "max": the best logit (MaxP of Dai and Callan, 2019); "mean";
    "first": that of the first sentence (FirstP); "long": that of the document, read as
    one unit (LongP); "mean_top": the mean of the ``top`` best logits; "sum": the sum of
    the scores, ``sigmoid(logit)``, the expected number of relevant sentences (most
    logits are negative, so their sum would put the longest document last); or
    "logsumexp": between "max" and a count. Without sentences it is ``-inf`` (0 for
    "sum"). Raises ``ValueError`` for a logit that is not finite.
    """
    check_aggregation(aggregation)
    if type(top) is not int or top < 1:
        raise ValueError(f"top is {top!r}; expected a whole number of at least 1")
    logits = np.asarray(logits, np.float64)
    if logits.ndim != 1 or not np.isfinite(logits).all():
        raise ValueError(
            f"got logits of shape {logits.shape}; expected one finite number for each"
            " sentence"
        )
    if aggregation == "sum":
        return float(sigmoid(logits).sum())
    if not len(logits):
        return -np.inf
    if aggregation == "mean_top":
        return float(np.sort(logits)[-top:].mean())
    if aggregation == "long" and len(logits) > 1:
        raise ValueError(
            f'aggregation "long" got {len(logits)} logits; expected one: use'
            ' unit="document"'
        )
    if aggregation in ("first", "long"):
        return float(logits[0])
    if aggregation == "mean":
        return float(logits.mean())
    best = logits.max()
    if aggregation == "logsumexp":
        best += np.log(np.exp(logits - best).sum())
    return float(best)


def check_aggregation(aggregation: str) -> None:
    """Raise ``ValueError`` for an unknown aggregation."""
    if aggregation not in get_args(Aggregation):
        raise ValueError(
            f"aggregation is {aggregation!r}; expected one of"
            f" {', '.join(get_args(Aggregation))}"
        )


def best_first(scores: Sequence[float]) -> list[tuple[int, float]]:
    """Indices and scores of documents, highest score first.

    Among equal scores the earlier document first.
    """
    return sorted(enumerate(scores), key=lambda document: -document[1])
