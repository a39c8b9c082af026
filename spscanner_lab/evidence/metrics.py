"""Metrics of one question's ranking: how much is relevant, what it costs to read, whether it holds an answer."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from string import punctuation

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.coverage import NEVER, Spans, evidence_ranks
from spscanner_rag.results.selection import rank

CUTOFFS = (1, 5, 10, 50)  # the paper's cut-offs (Table 5)

CHARACTER_BUDGETS = (1000, 2000, 4000)

BUDGETS = (250, 500, 1000, 2000)
"""Tokens.

The paper's settings, 5 chunks of 300 words or 50 sentences, come to 1,500 to 2,000.
"""

WORD_BUDGETS = (50, 100, 200, 300, 400, 500)
"""Numbers of words l from 0 to 500, as in "Dense X Retrieval" (Chen et al., 2024); 0
words hold no answer."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, punctuation))


def best_first(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Unit numbers from the highest score to the lowest, the earlier unit first among equals: (units,)."""
    scores = np.asarray(scores, np.float64)
    if missing := int(np.isnan(scores).sum()):
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
    """Recall, precision, nDCG, ERR, success and reciprocal rank among the best k, for each k, as in trec_eval.

    ``scores`` are (units,); among equal ones the earlier unit is first. ``relevant``,
    (units,), are booleans or grades; grades above 0 are relevant. ``missed`` are grades
    of relevant units that the ranking lacks. Ranks beyond the last unit count as not
    relevant for precision; nDCG has gain 1 or the grade, and discount ``log2(rank +
    1)``. "mrr" and "map" are over the whole ranking; other names are such as
    "recall@10". ERR is the expected reciprocal rank at which a reader stops; a unit of
    grade g satisfies the reader with probability (2^g - 1) / 2^G, where G is the
    highest grade (Chapelle et al., 2009). ``ValueError`` if no unit is relevant, since
    recall is then undefined.
    """
    if not (relevant.any() or missed):
        raise ValueError("got no relevant unit; recall needs at least one")
    gains = relevant[best_first(scores)].astype(np.float64)
    ideal, ranked = np.sort([*gains, *missed])[::-1], gains > 0
    total = int(ranked.sum()) + len(missed)
    first = int(np.argmax(ranked)) + 1 if ranked.any() else np.inf
    discounts = 1.0 / np.log2(np.arange(len(ideal)) + 2.0)
    precisions = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    content = np.exp2(gains - ideal[0]) - np.exp2(-ideal[0])  # (units,)
    stops = (
        content
        * np.cumprod([1.0, *(1 - content)])[:-1]
        / np.arange(1, len(content) + 1)
    )
    measured = {"mrr": 1.0 / first, "map": float(precisions[ranked].sum() / total)}
    for k in cutoffs:
        found = int(ranked[:k].sum())
        measured |= {
            f"recall@{k}": found / total,
            f"precision@{k}": found / k,
            f"ndcg@{k}": float(
                gains[:k] @ discounts[: len(gains)][:k] / (ideal[:k] @ discounts[:k])
            ),
            f"err@{k}": float(stops[:k].sum()),
            f"success@{k}": float(found > 0),
            f"mrr@{k}": 1.0 / first if first <= k else 0.0,
        }
    return measured


def units_within(
    scores: NDArray[np.floating], tokens: NDArray[np.integer], budget: int
) -> NDArray[np.int64]:
    """Indices of the units that fit into a budget of tokens, best first.

    ``scores`` and ``tokens`` are (units,).

    A unit that no longer fits is skipped and the next one is tried, as in
    `ScanResult.select`.
    """
    order = best_first(scores)
    smallest = int(tokens.min(initial=budget))
    kept, left = [], budget
    for place, cost in enumerate(tokens[order].tolist()):
        if left < smallest:
            break
        if cost <= left:
            kept.append(place)
            left -= cost
    return order[np.array(kept, np.int64)]


def recall_at_budgets(
    units: Spans,
    scores: NDArray[np.floating],
    tokens: NDArray[np.integer],
    sentences: Spans,
    budgets: Sequence[int] = BUDGETS,
) -> dict[int, float]:
    """For each budget of tokens, the share of evidence ``sentences`` at least half inside the units that fit.

    To compare settings, count the tokens of all with the same tokenizer.
    """
    recalls = {}
    for budget in budgets:
        kept = units_within(scores, tokens, budget)
        bought = Spans(units.starts[kept], units.ends[kept])
        recalls[budget] = float(
            (evidence_ranks(bought, scores[kept], sentences) < NEVER).mean()
        )
    return recalls


def character_metrics(
    units: Spans,
    scores: NDArray[np.floating],
    evidence: Spans,
    budgets: Sequence[int] = CHARACTER_BUDGETS,
) -> dict[str, float]:
    """Recall, precision and intersection over union of the characters of disjoint spans, such as "iou@1000".

    They are measured on the best units that fit into each budget of characters, by
    `units_within`, or, without a budget in the name, on the best k units, where k units
    of the corpus overlap the spans. As Smith and Troynikov (2024) define them, except
    that characters in several spans count once. Units are disjoint.
    """
    lengths, total = (
        units.ends - units.starts,
        int((evidence.ends - evidence.starts).sum()),
    )
    inside = np.zeros(len(lengths), np.int64)
    for start, end in zip(*evidence, strict=True):
        inside += np.maximum(
            np.minimum(units.ends, end) - np.maximum(units.starts, start), 0
        )
    chosen = {f"@{budget}": units_within(scores, lengths, budget) for budget in budgets}
    chosen[""] = best_first(scores)[: int((inside > 0).sum())]
    found: dict[str, float] = {}
    for name, best in chosen.items():
        held, read = int(inside[best].sum()), int(lengths[best].sum())
        found[f"character_recall{name}"] = held / total
        found[f"character_precision{name}"] = held / read if read else 0.0
        found[f"iou{name}"] = held / (read + total - held)
    return found


def answer_recall_at_words(
    texts: Iterable[str], answers: Sequence[str], budgets: Sequence[int] = WORD_BUDGETS
) -> dict[int, float]:
    """For each number of words, 1.0 if an answer is in that much of the texts, else 0.0.

    ``texts`` are the units, best first. Whole words are compared, as `normalized`.
    Empty if no answer has a word.
    """
    wanted = _wanted(answers)
    if not wanted:
        return {}
    words: list[str] = []
    for text in texts:
        words += text.split()
        if len(words) >= max(budgets):
            break
    cut = {budget: f" {normalized(' '.join(words[:budget]))} " for budget in budgets}
    return {
        budget: float(any(answer in held for answer in wanted))
        for budget, held in cut.items()
    }


def answer_recall_at(
    texts: Iterable[str], answers: Sequence[str], cutoffs: Sequence[int]
) -> dict[int, float]:
    """For each k, 1.0 if an answer is within one of the first k texts, else 0.0.

    See `answer_recall_at_words`.
    """
    wanted = _wanted(answers)
    if not wanted:
        return {}
    best = islice(texts, max(cutoffs))
    held = (
        any(answer in f" {normalized(text)} " for answer in wanted) for text in best
    )
    first = next((rank for rank, found in enumerate(held, 1) if found), NEVER)
    return {k: float(first <= k) for k in cutoffs}


def _wanted(answers: Sequence[str]) -> list[str]:
    return [f" {own} " for answer in answers if (own := normalized(answer))]


def normalized(answer: str) -> str:
    """An answer as SQuAD compares it: in lower case, without ASCII punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", words_of(answer)).split())


def words_of(text: str) -> str:
    """A text in lower case, without ASCII punctuation and extra white space."""
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())
