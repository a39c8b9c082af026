"""The text that chunks share, and their order by it."""

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise

# Minimum overlap of two chunks, in characters; a shorter one may be coincidence.
SHORTEST_OVERLAP = 16

# Limit for chunks that repeat one line over and over; their overlap may be missed.
LARGEST_OVERLAPS_TRIED = 256


def overlap(before: str, after: str) -> int:
    """Length of the longest end of ``before`` that ``after`` begins with.

    0 if it is below ``SHORTEST_OVERLAP``.

    Examples
    --------
    >>> overlap("The well was dry and old.", "was dry and old. They left.")
    16
    >>> overlap("The well was dry.", "dry.")
    0
    """
    probe = after[:SHORTEST_OVERLAP]
    if len(probe) < SHORTEST_OVERLAP:
        return 0
    start = max(0, len(before) - len(after)) - 1
    for _ in range(LARGEST_OVERLAPS_TRIED):
        start = before.find(probe, start + 1)
        if start < 0:
            break
        if after.startswith(before[start:]):
            return len(before) - start
    return 0


def share_text(texts: Sequence[str]) -> bool:
    """Tell whether a text begins with the end of another one.

    Chunks of one document may do so.
    """
    distinct = list(dict.fromkeys(texts))
    for before, after in pairwise(order_by_overlap(distinct)):
        if overlap(distinct[before], distinct[after]):
            return True
    return False


def order_by_overlap(texts: Sequence[str], placed: Container[int] = ()) -> list[int]:
    """Indices of texts, each before the one that begins with most of its end.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    placed : container of int
        Indices of texts whose order is known; chains of texts are sorted by them.
    """
    if all(overlap(before, after) for before, after in pairwise(texts)):
        return list(range(len(texts)))
    chains = _chains(texts)

    def first_placed(chain: Sequence[int]) -> int:
        for number in chain:
            if number in placed:
                return number
        return chain[0]

    chains.sort(key=first_placed)
    order: list[int] = []
    for chain in chains:
        order += chain
    return order


def _chains(texts: Sequence[str]) -> list[list[int]]:
    """Chains of texts, each of which begins with the end of the one before it."""
    beginnings: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if len(text) >= SHORTEST_OVERLAP:
            beginnings.setdefault(text[:SHORTEST_OVERLAP], []).append(number)
    following: dict[int, int] = {}
    first_of_last = {number: number for number in range(len(texts))}
    last_of_first = dict(first_of_last)
    for number in range(len(texts)):
        after = _begun_by_the_end(number, texts, beginnings, last_of_first)
        if after is not None:
            first = first_of_last.pop(number)
            last = last_of_first.pop(after)
            first_of_last[last] = first
            last_of_first[first] = last
            following[number] = after
    chains = []
    for first in last_of_first:
        chain = [first]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(chain)
    return chains


def _begun_by_the_end(
    number: int,
    texts: Sequence[str],
    beginnings: Mapping[str, Sequence[int]],
    last_of_first: Mapping[int, int],
) -> int | None:
    """The text that begins with the longest end of this one.

    It must be the first of its chain, and this one must not be in that chain.
    """
    text = texts[number]
    tried = 0
    for start in range(len(text) - SHORTEST_OVERLAP + 1):
        candidates = beginnings.get(text[start : start + SHORTEST_OVERLAP], ())
        if number + 1 in candidates:  # the next text is the likeliest
            candidates = [number + 1, *candidates]
        for candidate in candidates:
            if last_of_first.get(candidate, number) == number:
                continue
            if texts[candidate].startswith(text[start:]):
                return candidate
            tried += 1
            if tried > LARGEST_OVERLAPS_TRIED:
                return None
    return None
