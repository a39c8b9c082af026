"""The first sentence of a comparison: who found the evidence or, where none is given, whether they agree."""

from collections.abc import Sequence

from spscanner_rag.apps.compare.retrievals import Retrievals
from spscanner_rag.apps.pages.labels import listed

_THE_ONE = "the evidence sentence"


def verdict(comparison: Retrievals, labels: Sequence[str]) -> str:
    """One or two sentences as plain text."""
    if comparison.evidence_sentences:
        return _on_evidence(comparison, labels)
    if len(labels) < 2:
        return "One retriever: give several to compare them."
    tops = [retrieval.picks[0] for retrieval in comparison.retrievals if retrieval.picks]
    apart = len(tops) < len(labels) or any(
        one.start >= other.end or other.start >= one.end for one in tops for other in tops
    )
    agreed = "do not agree on what is best" if apart else "put the same place first"
    return f"The {len(labels)} retrievers {agreed}. Pass --evidence to see which one is right."


def _on_evidence(comparison: Retrievals, labels: Sequence[str]) -> str:
    total = len(comparison.evidence_sentences)
    found = []  # for each retriever, how many evidence sentences, and the best rank of a pick that overlaps one
    for retrieval in comparison.retrievals:
        pairs = zip(comparison.evidence_sentences, retrieval.found, strict=True)
        spans = [span for span, is_found in pairs if is_found]
        ranks = [
            pick.rank
            for pick in retrieval.picks
            if any(pick.start < end and start < pick.end for start, end in spans)
        ]
        found.append((len(spans), min(ranks, default=0)))
    most = max(number for number, _ in found)
    if most == 0:
        return f"No retriever found {f'any of the {total} evidence sentences' if total > 1 else _THE_ONE}."
    both = "both evidence sentences" if total == 2 else f"all {total} evidence sentences"
    all_of = _THE_ONE if total == 1 else both if most == total else f"{most} of {total} evidence sentences"
    winners = [(rank, label) for label, (number, rank) in zip(labels, found, strict=True) if number == most]
    winners.sort(key=lambda winner: winner[0])  # of equal ranks, in the order of the retrievals
    who = listed([label for _, label in winners]) + (" each" if len(winners) > 1 else "")
    ranks_of = [f"{rank}" for rank, _ in winners]
    at = f"at rank {ranks_of[0]}" if len(set(ranks_of)) == 1 else f"at ranks {listed(ranks_of)}"
    where = f"{', the first' if most > 1 else ''} {at}"
    others = [
        f"{label} found {number or 'none'}"
        for label, (number, _) in zip(labels, found, strict=True)
        if number < most
    ]
    return f"{who} found {all_of}{where}{f'; {listed(others)}' if others else ''}."
