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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The arguments of `ScanResult.select`, checked: a ``ValueError`` begins with the name of the first bad one.

    In a selection from several texts, ``top_k`` and ``max_tokens`` hold for all of them
    together, and ``top_k_per_text`` is the maximum number of sentences of each, without
    neighbours.
    """

    top_k: float | str | None = 50
    threshold: float | None = None
    max_tokens: int | None = None
    count_tokens: CountTokens | str | None = None
    context: int = 0
    order: Order = "document"
    merge: bool = False
    diversity: float = 1.0
    top_k_per_text: int | None = None
    always_keep: AlwaysKeep | None = None

    def __post_init__(self) -> None:
        def check(name: str, valid: object, expected: str) -> None:
            if not valid:
                raise ValueError(
                    f"{name}: got {getattr(self, name)!r:.80}; expected {expected}"
                )

        count, top_k = "an integer of at least 1", self.top_k
        share = _within_1(top_k) and 0 < top_k < 1  # type: ignore[operator]
        elbow = isinstance(top_k, str) and _elbow_bounds(top_k)
        shares = (
            'a share of the sentences between 0 and 1 (both excluded), "elbow" or'
            ' "elbow:5-30"'
        )
        check(
            "top_k",
            share or elbow or _counts(top_k),
            f"{count}, {shares}, or None for all",
        )
        meaning = "a score is the sigmoid of a logit, so 0.5 stands for logit 0"
        scored = self.threshold is None or _within_1(self.threshold)
        check("threshold", scored, f"a score from 0 to 1, or None: {meaning}")
        check("max_tokens", _counts(self.max_tokens), f"{count}, or None for no budget")
        check_counter(self.count_tokens)
        near = is_integer(self.context) and self.context >= 0
        check(
            "context",
            near,
            "the number of neighbours on each side, an integer of at least 0",
        )
        known = isinstance(self.order, str) and self.order in get_args(Order)
        check("order", known, '"document" or "score" (best first)')
        check("merge", isinstance(self.merge, bool | np.bool_), "True or False")
        ignores = "1 ignores whether sentences repeat each other"
        check(
            "diversity", _within_1(self.diversity), f"a number from 0 to 1; {ignores}"
        )
        check(
            "top_k_per_text",
            _counts(self.top_k_per_text),
            f"{count}, or None for no limit",
        )
        patterns = r'a list of regular expressions, such as ["\\d{4}-\\d\\d"]'
        check(
            "always_keep",
            _can_keep(self.always_keep),
            f"{patterns}, a function of a sentence, or None",
        )

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


def _can_keep(always_keep: object) -> bool:
    if not isinstance(always_keep, Sequence) or isinstance(always_keep, str):
        return always_keep is None or callable(always_keep)
    try:
        return bool(always_keep) and all(
            isinstance(own, str) and re.compile(own) for own in always_keep
        )
    except re.error:
        return False


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


def is_integer(value: object) -> TypeGuard[int]:
    """True for a whole number of Python or numpy that is not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _counts(value: object) -> bool:
    return value is None or (is_integer(value) and value >= 1)


def _within_1(value: object) -> bool:
    return (is_integer(value) or isinstance(value, float | np.floating)) and bool(
        0 <= value <= 1
    )


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
