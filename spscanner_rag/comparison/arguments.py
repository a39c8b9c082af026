"""What a comparison can be asked for, checked before any work."""

from collections.abc import Iterable, Sequence

MOST_PICKS = 500
"""Of one retriever: a comparison is there to be read."""

MOST_RETRIEVERS = 8
"""That stand side by side."""


def check_top_k(top_k: int | Sequence[int], retrievers: int) -> list[int]:
    """One number of picks for each retriever.

    Raises
    ------
    ValueError
        For a number out of range, another count of numbers than of retrievers, or too few or many retrievers.
    """
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
    """The spans in order, those that overlap or touch made one.

    Raises
    ------
    ValueError
        For a span that is empty, leaves the text, or holds nothing but white space.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(evidence):
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"evidence: got {start}-{end}; expected START-END with 0 <= START < END <= {len(text)}, the "
                "characters of the document"
            )
        if text[start:end].isspace():
            raise ValueError(f"evidence: got {start}-{end}, which is white space; expected words that answer")
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
