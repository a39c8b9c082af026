"""All metrics of one question, by name, such as "recall@10", from 0 to 1."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.corpus_units import UnitPool
from spscanner_lab.evidence.metrics import (
    BUDGETS,
    CUTOFFS,
    answer_recall_at,
    answer_recall_at_words,
    best_first,
    ranking_metrics,
    recall_at_budgets,
)
from spscanner_lab.evidence.questions import Question
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.results.coverage import Spans, evidence_ranks
from spscanner_rag.results.document_scores import Aggregation, document_score
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Unit

POSITION_CUTOFFS = {"sentence": (10, 50), "chunk": (5,)}
"""Ranks at which recall by position in the document is recorded; the last of each is
the paper's setting."""

OTHER_POSITION_CUTOFFS = (10,)
"""The same for other units."""

POSITION_BINS = 10  # equal parts of a document

DOCUMENT_CUTOFFS = (1, 5, 10)  # cut-offs of the recall of a corpus's right document


def evidence_metrics(
    units: UnitPool,
    scores: NDArray[np.floating],
    evidence: Spans,
    cutoffs: Sequence[int] = CUTOFFS,
) -> dict[str, float]:
    """The metrics of evidence, and the tokens of the best k units.

    Recall is the share of evidence sentences that lie at least half inside the best k
    units; "best_recall" is the recall of the k units that hold the most evidence
    sentences. A unit is relevant for precision, nDCG, success and MRR if it holds at
    least half of an evidence sentence; these are 0 if no unit does.
    """
    held = _sentences_held(units.spans, evidence)
    metrics: dict[str, float] = {}
    metrics |= _recalls("recall", units.spans, scores, evidence, cutoffs)
    best_order = held.astype(np.float64)
    metrics |= _recalls("best_recall", units.spans, best_order, evidence, cutoffs)
    missed = () if held.any() else (1.0,)
    for name, value in ranking_metrics(scores, held > 0, cutoffs, missed).items():
        # recall is measured by sentences above, and ERR is for graded documents
        if not name.startswith(("recall@", "err@")):
            metrics[name] = value
    budgets = recall_at_budgets(units.spans, scores, units.tokens, evidence, BUDGETS)
    for budget, value in budgets.items():
        metrics[f"recall_at_tokens@{budget}"] = value
    tokens = units.tokens[best_first(scores)]  # tokens that units share count in each
    for k in cutoffs:
        metrics[f"tokens@{k}"] = int(tokens[:k].sum())
    return metrics


def _sentences_held(units: Spans, evidence: Spans) -> NDArray[np.int64]:
    """Evidence sentences of which each unit holds at least half: (units,)."""
    held = np.zeros(len(units.starts), np.int64)
    for start, end in zip(*evidence, strict=True):
        inside = np.minimum(units.ends, end) - np.maximum(units.starts, start)
        held += 2 * inside >= end - start
    return held


def _recalls(
    name: str,
    units: Spans,
    scores: NDArray[np.floating],
    evidence: Spans,
    cutoffs: Sequence[int],
) -> dict[str, float]:
    ranks = evidence_ranks(units, scores, evidence)
    return {f"{name}@{k}": float((ranks <= k).mean()) for k in cutoffs}


def answer_metrics(
    scorer: Scorer,
    question: Question,
    text: str,
    ranking: Sequence[Unit],
    cutoffs: Sequence[int],
) -> dict[str, float]:
    """Whether a right answer is in the best units, by number of units and of words.

    ``ranking`` has the units, best first.
    """
    texts = [text[unit.start : unit.end] for unit in ranking]
    shares_by_name = {
        "answer_recall": answer_recall_at(texts, question.answers, cutoffs),
        "answer_recall_at_words": answer_recall_at_words(texts, question.answers),
    }
    if isinstance(scorer, Propositions) and question.answers:
        propositions = scorer.best_propositions(question.text, text)
        best_texts = [proposition.text for proposition in propositions]
        shares = answer_recall_at_words(best_texts, question.answers)
        shares_by_name["answer_recall_in_propositions"] = shares
    metrics = {}
    for name, shares in shares_by_name.items():
        for k, share in shares.items():
            metrics[f"{name}@{k}"] = share
    return metrics


def within(units: Spans, evidence: Iterable[tuple[int, int]]) -> Spans:
    """The parts of evidence inside units, each character once.

    White space between units is outside.
    """
    characters = int(units.ends.max(initial=0)) + 2
    is_held = _marks(characters, zip(*units, strict=True))
    is_evidence = _marks(characters, evidence)
    edges = np.flatnonzero(np.diff(is_held & is_evidence))
    starts, ends = edges.reshape(-1, 2).T
    return Spans(starts, ends)


def _marks(characters: int, spans: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    """True for characters inside the spans, one place later: (characters,)."""
    marks = np.zeros(characters, bool)
    for start, end in spans:
        marks[start + 1 : end + 1] = True
    return marks


def document_metrics(
    scores: Sequence[NDArray[np.floating]],
    right: Sequence[bool],
    aggregation: Aggregation = "max",
) -> dict[str, float]:
    """Reciprocal rank and recall@1, 5 and 10 of the right document.

    They are 0 if it was not read. ``scores`` are (units,) for each document.
    """
    document_scores = [document_score(values, aggregation) for values in scores]
    ranked: dict[str, float] = {}
    if any(right):
        values = np.array(document_scores)
        ranked = ranking_metrics(values, np.array(right), DOCUMENT_CUTOFFS)
    metrics = {"document_mrr": ranked.get("mrr", 0.0)}
    for k in DOCUMENT_CUTOFFS:
        metrics[f"document_recall@{k}"] = ranked.get(f"recall@{k}", 0.0)
    return metrics


def graded_metrics(
    ranking: Sequence[str], grades: Mapping[str, int], cutoffs: Sequence[int]
) -> dict[str, float]:
    """Metrics of a ranking of ids, best first, as in trec_eval.

    They are such as "ndcg@10", "recall@100", "map" and "mrr". Relevant documents that
    are not in the ranking count as missed; a grade below 0 counts as 0.

    Examples
    --------
    >>> from spscanner_lab.evaluation.question_metrics import graded_metrics
    >>> metrics = graded_metrics(["b", "a"], {"a": 1}, cutoffs=[1])
    >>> metrics["mrr"], metrics["recall@1"]
    (0.5, 0.0)
    """
    gains = [max(grades.get(document, 0), 0) for document in ranking]
    in_ranking = set(ranking)
    missed = []
    for document, grade in grades.items():
        if grade > 0 and document not in in_ranking:
            missed.append(grade)
    order = -np.arange(len(gains), dtype=np.float64)
    return ranking_metrics(order, np.array(gains, np.float64), cutoffs, missed)


def recall_by_position(
    sentences: Spans, ranks: NDArray[np.int64], k: int, characters: int
) -> dict[str, float]:
    """The share of evidence sentences among the best k, in each tenth of the document.

    Tenths without any are left out (the paper's Figure 13). A sentence counts in the
    tenth that contains its middle.
    """
    tenths = (sentences.starts + sentences.ends) * POSITION_BINS // (2 * characters)
    there = np.bincount(tenths, minlength=POSITION_BINS)
    seen = np.bincount(tenths, weights=ranks <= k, minlength=POSITION_BINS)
    recalls = {}
    for part in np.flatnonzero(there):
        name = f"recall_by_position@{k}@{part + 1}"
        recalls[name] = float(seen[part] / there[part])
    return recalls
