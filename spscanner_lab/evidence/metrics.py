"""Metrics of one question's ranking: how much of the evidence is near the top.

Recall at a budget of tokens or characters says what the evidence costs to read, and
answer recall whether an answer in words is in the best texts.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from string import punctuation

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.coverage import NEVER, Spans, evidence_ranks
from spscanner_rag.results.ranking import rank

CUTOFFS = (1, 5, 10, 50)  # the paper's cut-offs (Table 5)

CHARACTER_BUDGETS = (1000, 2000, 4000)

BUDGETS = (250, 500, 1000, 2000)
"""Budgets of tokens.

The paper's settings, 5 chunks of 300 words or 50 sentences, come to 1,600 to 2,000.
"""

WORD_BUDGETS = (50, 100, 200, 300, 400, 500)
"""Numbers of words l from 0 to 500, as in "Dense X Retrieval" (Chen et al., 2024).

0 words hold no answer.
"""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, punctuation))

Floats = NDArray[np.float64]


def best_first(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return unit numbers from the highest score to the lowest: (units,).

    The earlier unit is first among equals. ``ValueError`` for NaN.
    """
    scores = np.asarray(scores, np.float64)
    missing = int(np.isnan(scores).sum())
    if missing:
        raise ValueError(
            f"{missing} of {len(scores)} scores are not numbers; expected numbers"
        )
    return rank(scores)


def ranking_metrics(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_ | np.number],
    cutoffs: Sequence[int] = CUTOFFS,
    missed: Sequence[float] = (),
) -> dict[str, float]:
    """Return metrics of the best k units, for each k, as trec_eval computes them.

    These are recall, precision, nDCG, ERR, success and reciprocal rank, such as
    "recall@10"; "mrr" and "map" are over the whole ranking.

    Parameters
    ----------
    scores : (units,)
        Among equal ones the earlier unit is first.
    relevant : (units,)
        Booleans or grades; grades above 0 are relevant.
    cutoffs : sequence of int
        The numbers k.
    missed : sequence of float
        Grades of relevant units that the ranking lacks.

    Raises
    ------
    ValueError
        If no unit is relevant, since recall is then undefined.

    Notes
    -----
    Ranks beyond the last unit count as not relevant for precision; nDCG has gain 1 or
    the grade, and discount ``log2(rank + 1)``. ERR is the expected reciprocal rank at
    which a reader stops; a unit of grade g satisfies the reader with probability
    (2^g - 1) / 2^G, where G is the highest grade (Chapelle et al., 2009).

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_lab.evidence.metrics import ranking_metrics
    >>> metrics = ranking_metrics(np.array([0.3, 0.9, 0.1]), np.array([1, 0, 1]), [2])
    >>> metrics["recall@2"], metrics["mrr"]
    (0.5, 0.5)
    """
    if not (relevant.any() or missed):
        raise ValueError("got no relevant unit; recall needs at least one")
    ranked_gains = relevant[best_first(scores)].astype(np.float64)
    ideal_gains = np.sort([*ranked_gains, *missed])[::-1]
    is_relevant = ranked_gains > 0
    relevant_total = int(is_relevant.sum()) + len(missed)
    first_rank = np.inf
    if is_relevant.any():
        first_rank = int(np.argmax(is_relevant)) + 1
    discounts = 1.0 / np.log2(np.arange(len(ideal_gains)) + 2.0)
    precisions = np.cumsum(is_relevant) / np.arange(1, len(is_relevant) + 1)
    stop_shares = _stops(ranked_gains, ideal_gains[0])
    average_precision = float(precisions[is_relevant].sum() / relevant_total)
    metrics = {"mrr": 1.0 / first_rank, "map": average_precision}
    for cutoff in cutoffs:
        relevant_found = int(is_relevant[:cutoff].sum())
        gain = ranked_gains[:cutoff] @ discounts[: len(ranked_gains)][:cutoff]
        ideal_gain = ideal_gains[:cutoff] @ discounts[:cutoff]
        metrics |= {
            f"recall@{cutoff}": relevant_found / relevant_total,
            f"precision@{cutoff}": relevant_found / cutoff,
            f"ndcg@{cutoff}": float(gain / ideal_gain),
            f"err@{cutoff}": float(stop_shares[:cutoff].sum()),
            f"success@{cutoff}": float(relevant_found > 0),
            f"mrr@{cutoff}": 1.0 / first_rank if first_rank <= cutoff else 0.0,
        }
    return metrics


def _stops(ranked_gains: Floats, highest: float) -> Floats:
    """Return what each rank adds to ERR: (units,)."""
    content = np.exp2(ranked_gains - highest) - np.exp2(-highest)
    reaches = np.cumprod([1.0, *(1 - content)])[:-1]
    ranks = np.arange(1, len(content) + 1)
    stop_shares: Floats = content * reaches / ranks
    return stop_shares


def units_within(
    scores: NDArray[np.floating], tokens: NDArray[np.integer], budget: int
) -> NDArray[np.int64]:
    """Return indices of the units that fit into a budget of tokens, best first.

    ``scores`` and ``tokens`` are (units,). A unit that no longer fits is skipped and
    the next one is tried, as in `ScanResult.select`.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_lab.evidence.metrics import units_within
    >>> units_within(np.array([0.1, 0.9, 0.5]), np.array([10, 20, 90]), 50).tolist()
    [1, 0]
    """
    best_units = best_first(scores)
    smallest = int(tokens.min(initial=budget))
    fitting_ranks = []
    tokens_left = budget
    for place, cost in enumerate(tokens[best_units].tolist()):
        if tokens_left < smallest:
            break
        if cost <= tokens_left:
            fitting_ranks.append(place)
            tokens_left -= cost
    return best_units[np.array(fitting_ranks, np.int64)]


def recall_at_budgets(
    units: Spans,
    scores: NDArray[np.floating],
    tokens: NDArray[np.integer],
    sentences: Spans,
    budgets: Sequence[int] = BUDGETS,
) -> dict[int, float]:
    """Return the recall of evidence within each budget of tokens.

    It is the share of evidence ``sentences`` that are at least half inside the units
    that fit. To compare settings, count the tokens of all with the same tokenizer.
    """
    recalls = {}
    for budget in budgets:
        fitting = units_within(scores, tokens, budget)
        spans = Spans(units.starts[fitting], units.ends[fitting])
        ranks = evidence_ranks(spans, scores[fitting], sentences)
        recalls[budget] = float((ranks < NEVER).mean())
    return recalls


def character_metrics(
    units: Spans,
    scores: NDArray[np.floating],
    evidence: Spans,
    budgets: Sequence[int] = CHARACTER_BUDGETS,
) -> dict[str, float]:
    """Return recall, precision and intersection over union of characters.

    They are measured on the best units that fit into each budget of characters, by
    `units_within`, such as "iou@1000", or, without a budget in the name, on the best k
    units, where k units of the corpus overlap the spans. As Smith and Troynikov (2024)
    define them, except that characters in several spans count once. Units are disjoint.
    """
    lengths = units.ends - units.starts
    relevant_total = int((evidence.ends - evidence.starts).sum())
    relevant_characters = np.zeros(
        len(lengths), np.int64
    )  # characters of evidence in each unit
    for start, end in zip(*evidence, strict=True):
        overlap = np.minimum(units.ends, end) - np.maximum(units.starts, start)
        relevant_characters += np.maximum(overlap, 0)
    selections = {}
    for budget in budgets:
        selections[f"@{budget}"] = units_within(scores, lengths, budget)
    overlapping = int((relevant_characters > 0).sum())
    selections[""] = best_first(scores)[:overlapping]
    metrics: dict[str, float] = {}
    for name, selection in selections.items():
        relevant = int(relevant_characters[selection].sum())
        length = int(lengths[selection].sum())
        metrics[f"character_recall{name}"] = relevant / relevant_total
        metrics[f"character_precision{name}"] = relevant / length if length else 0.0
        metrics[f"iou{name}"] = relevant / (length + relevant_total - relevant)
    return metrics


def answer_recall_at_words(
    texts: Iterable[str], answers: Sequence[str], budgets: Sequence[int] = WORD_BUDGETS
) -> dict[int, float]:
    """Return, for each number of words, whether an answer is in that much of the texts.

    1.0 if it is, else 0.0. ``texts`` are the units, best first. Whole words are
    compared, as `normalized`. Empty if no answer has a word.
    """
    wanted_answers = _wanted(answers)
    if not wanted_answers:
        return {}
    words: list[str] = []
    for text in texts:
        words += text.split()
        if len(words) >= max(budgets):
            break
    recalls = {}
    for budget in budgets:
        beginning = " ".join(words[:budget])
        recalls[budget] = float(_contains(beginning, wanted_answers))
    return recalls


def answer_recall_at(
    texts: Iterable[str], answers: Sequence[str], cutoffs: Sequence[int]
) -> dict[int, float]:
    """Return, for each k, whether an answer is within one of the first k texts.

    1.0 if it is, else 0.0. See `answer_recall_at_words`.
    """
    wanted_answers = _wanted(answers)
    if not wanted_answers:
        return {}
    first_rank = NEVER
    for place, text in enumerate(islice(texts, max(cutoffs)), 1):
        if _contains(text, wanted_answers):
            first_rank = place
            break
    return {cutoff: float(first_rank <= cutoff) for cutoff in cutoffs}


def _wanted(answers: Sequence[str]) -> list[str]:
    """Return the answers as `normalized`, without those that have no word."""
    return list(filter(None, map(normalized, answers)))


def _contains(text: str, answers: Sequence[str]) -> bool:
    """Whether the words of one of these normalized answers are in a text."""
    words = f" {normalized(text)} "
    return any(f" {answer} " in words for answer in answers)


def normalized(answer: str) -> str:
    """Return an answer as SQuAD compares it.

    In lower case, without ASCII punctuation, articles and extra white space.

    Examples
    --------
    >>> from spscanner_lab.evidence.metrics import normalized
    >>> normalized("The  Keeper's dog.")
    'keepers dog'
    """
    return " ".join(_ARTICLES.sub(" ", words_of(answer)).split())


def words_of(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and extra white space."""
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())
