"""Summarizes a comparison in one or two sentences."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from spscanner_rag.apps.compare.results import ComparedDocument, Pick, Retrieval
from spscanner_rag.apps.pages.html_page import listed

_ONE_SENTENCE = "the evidence sentence"


def verdict(comparison: ComparedDocument, labels: Sequence[str]) -> str:
    """Summarize a comparison in one or two sentences of plain text."""
    if comparison.evidence_sentences:
        return _verdict_on_evidence(comparison, labels)
    if len(labels) < 2:
        return "One retriever: give several to compare them."
    agreed = "do not agree on what is best"
    if _agree(comparison):
        agreed = "put the same place first"
    return (
        f"The {len(labels)} retrievers {agreed}. Pass --evidence to see which one is"
        " right."
    )


def _agree(comparison: ComparedDocument) -> bool:
    """True if the best picks of all retrievers overlap each other."""
    best_picks: list[Pick] = []
    for retrieval in comparison.retrievals:
        if not retrieval.picks:
            return False
        best_picks.append(retrieval.picks[0])
    for pick, other in combinations(best_picks, 2):
        if pick.start >= other.end or other.start >= pick.end:
            return False
    return all(pick.start < pick.end for pick in best_picks)


class _Success(NamedTuple):
    """What one retriever found of the evidence.

    ``rank`` is the best of a pick that overlaps a sentence which it found, or 0.
    """

    label: str
    n_found: int
    rank: int


def _success(
    comparison: ComparedDocument, retrieval: Retrieval, label: str
) -> _Success:
    sentences = zip(comparison.evidence_sentences, retrieval.found, strict=True)
    spans = [span for span, is_found in sentences if is_found]
    ranks: list[int] = []
    for pick in retrieval.picks:
        if any(pick.start < end and start < pick.end for start, end in spans):
            ranks.append(pick.rank)
    return _Success(label, len(spans), min(ranks, default=0))


def _verdict_on_evidence(comparison: ComparedDocument, labels: Sequence[str]) -> str:
    total = len(comparison.evidence_sentences)
    successes: list[_Success] = []
    for retrieval, label in zip(comparison.retrievals, labels, strict=True):
        successes.append(_success(comparison, retrieval, label))
    highest = max(success.n_found for success in successes)
    if highest == 0:
        missed = (
            _ONE_SENTENCE if total == 1 else f"any of the {total} evidence sentences"
        )
        return f"No retriever found {missed}."

    winners = [success for success in successes if success.n_found == highest]
    # equal ranks keep the order of the retrievals
    winners.sort(key=lambda success: success.rank)
    others: list[str] = []
    for success in successes:
        if success.n_found < highest:
            others.append(f"{success.label} found {success.n_found or 'none'}")

    sentence = f"{_names_of(winners)} found {_share_of_evidence(highest, total)}"
    if highest > 1:
        sentence += ", the first"
    sentence += f" {_ranks_of(winners)}"
    if others:
        sentence += f"; {listed(others)}"
    return f"{sentence}."


def _share_of_evidence(number: int, total: int) -> str:
    if total == 1:
        return _ONE_SENTENCE
    if number < total:
        return f"{number} of {total} evidence sentences"
    if total == 2:
        return "both evidence sentences"
    return f"all {total} evidence sentences"


def _names_of(winners: Sequence[_Success]) -> str:
    names = listed([winner.label for winner in winners])
    return f"{names} each" if len(winners) > 1 else names


def _ranks_of(winners: Sequence[_Success]) -> str:
    ranks = [str(winner.rank) for winner in winners]
    if len(set(ranks)) == 1:
        return f"at rank {ranks[0]}"
    return f"at ranks {listed(ranks)}"
