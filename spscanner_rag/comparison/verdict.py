"""The first sentence of a comparison: who found the evidence or, where none is given, whether they agree."""

from collections.abc import Sequence

from spscanner_rag.comparison.retrievals import Retrievals


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
    return f"The {len(labels)} retrievers {agreed}. Who is right cannot be told without the evidence (--evidence)."


def _on_evidence(comparison: Retrievals, labels: Sequence[str]) -> str:
    total = len(comparison.evidence_sentences)
    found = [sum(retrieval.found) for retrieval in comparison.retrievals]
    sentences = "the evidence sentence" if total == 1 else f"{total} evidence sentences"
    most = max(found)
    if most == 0:
        return f"No retriever found {sentences if total == 1 else f'any of the {sentences}'}."
    all_of = f"{most} of {sentences}" if total > 1 else sentences
    if min(found) == most:
        who = f"All {len(labels)} retrievers" if len(labels) > 1 else labels[0]
        return f"{who} found {all_of}."
    winners = [label for label, number in zip(labels, found, strict=True) if number == most]
    others = [
        f"{label} {number or 'none'}" for label, number in zip(labels, found, strict=True) if number < most
    ]
    return f"{_listed(winners)} found {all_of}; {_listed(others)}."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
