"""Order chunks of one document, which have neither offsets nor links, by the text that neighbours share."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from spscanner_rag.retrieval.chunk_location import LARGEST_OVERLAPS_TRIED, SHORTEST_OVERLAP, overlap


def order_by_overlap(texts: Sequence[str]) -> list[int]:
    """Indices of the texts, each directly followed by the one that begins with its end, if there is one.

    Among several, the one with the longest overlap counts, and of equal ones the next in the order given. Chains
    of overlapping texts are ordered by their first member. Texts that all overlap as given keep their order.
    """
    chains = _Chains(len(texts))
    if all(overlap(before, after) for before, after in pairwise(texts)):
        return list(range(len(texts)))
    beginnings: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if len(text) >= SHORTEST_OVERLAP:
            beginnings.setdefault(text[:SHORTEST_OVERLAP], []).append(number)
    for number in range(len(texts)):
        after = _begun_by_the_end(number, texts, beginnings, chains)
        if after is not None:
            chains.link(number, after)
    return chains.order()


class _Chains:
    """Texts in chains; at first each is a chain of its own."""

    def __init__(self, count: int) -> None:
        self.following: dict[int, int] = {}
        self._head = dict(enumerate(range(count)))  # of the chain that ends with a text
        self._tail = dict(enumerate(range(count)))  # of the chain that begins with a text

    def may_link(self, number: int, after: int) -> bool:
        """Whether ``after`` begins another chain than that which ``number`` ends."""
        return after in self._tail and self._tail[after] != number

    def link(self, number: int, after: int) -> None:
        """Append the chain that begins with ``after`` to the one that ends with ``number``."""
        head, tail = self._head.pop(number), self._tail.pop(after)
        self.following[number] = after
        self._head[tail], self._tail[head] = head, tail

    def heads(self) -> list[int]:
        """The texts that begin a chain, in the order given."""
        return sorted(self._tail)

    def order(self) -> list[int]:
        """All texts, chain by chain."""
        order: list[int] = []
        for head in self.heads():
            link: int | None = head
            while link is not None:
                order.append(link)
                link = self.following.get(link)
        return order


def _begun_by_the_end(
    number: int, texts: Sequence[str], beginnings: Mapping[str, Sequence[int]], chains: _Chains
) -> int | None:
    """The text that begins with the longest end of this one."""
    text, tried = texts[number], 0
    for start in range(1, len(text) - SHORTEST_OVERLAP + 1):
        others = beginnings.get(text[start : start + SHORTEST_OVERLAP], ())
        for other in (number + 1, *others) if number + 1 in others else others:
            if not chains.may_link(number, other):
                continue
            if texts[other].startswith(text[start:]):
                return other
            tried += 1
            if tried > LARGEST_OVERLAPS_TRIED:
                return None
    return None
