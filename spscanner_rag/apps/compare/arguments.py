"""What a comparison may be asked for: the numbers of picks and retrievers, and the evidence."""

from collections.abc import Iterable, Sequence

from spscanner_rag.apps.compare.retrievals import merged

MOST_PICKS = 500
"""The most picks of one retriever, so that a comparison stays readable."""

MOST_RETRIEVERS = 8
"""The most retrievers side by side."""


def check_top_k(top_k: int | Sequence[int], retrievers: int) -> list[int]:
    """One number of picks for each retriever; ``ValueError`` for bad numbers, no retriever or too many."""
    if not 1 <= retrievers <= MOST_RETRIEVERS:
        raise ValueError(f"got {retrievers} retrievers to compare; expected 1 to {MOST_RETRIEVERS}")
    numbers = list(top_k) if isinstance(top_k, Sequence) else [top_k] * retrievers
    if len(numbers) != retrievers:
        raise ValueError(
            f"top_k: got {len(numbers)} numbers for {retrievers} retrievers; expected one, or one for each"
        )
    for number in numbers:
        if type(number) is not int or not 1 <= number <= MOST_PICKS:
            raise ValueError(f"top_k: got {number!r}; expected a whole number from 1 to {MOST_PICKS}")
    return numbers


def check_evidence_spans(evidence: Iterable[tuple[int, int]], text: str) -> tuple[tuple[int, int], ...]:
    """The spans in order, with those that overlap or touch merged.

    Raises ``ValueError`` for a span that is empty, leaves the text, or holds nothing but white space.
    """
    spans = sorted(evidence)
    for start, end in spans:
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"evidence: got {start}-{end}; expected START-END with 0 <= START < END <= {len(text)}, the "
                "characters of the document"
            )
        if text[start:end].isspace():
            raise ValueError(f"evidence: got {start}-{end}, which is white space; expected words that answer")
    return tuple(merged(spans, 1))
