"""The picks of several retrievers from one document."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from spscanner_rag.files.documents import TextFile


@dataclass(frozen=True, slots=True)
class Pick:
    """One unit that a retriever picked.

    Attributes
    ----------
    start, end
        Its span in the document, in characters.
    score
        From 0 to 1; the scores of two retrievers cannot be compared.
    rank
        1 is the retriever's best, of all documents that were compared together.
    tokens
        Tokens of the unit by itself.
    only
        No other retriever picked it: none of their picks shares half of the shorter of the two.
    """

    start: int
    end: int
    score: float
    rank: int
    tokens: int
    only: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of one retriever.

    Attributes
    ----------
    name
        The retriever's name, as the caller gave it.
    units
        Number of units that it cut the document into and scored.
    picks
        The best of them, best first.
    seconds
        Time to cut and score the document, without loading a model.
    seconds_again
        The same for one more question on the document: less for a retriever that keeps what it made of the text.
    found
        For each evidence sentence, whether at least half of it lies inside the picks.
    """

    name: str
    units: int
    picks: tuple[Pick, ...]
    seconds: float
    found: tuple[bool, ...]
    seconds_again: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of all picks together."""
        return sum(pick.tokens for pick in self.picks)

    @property
    def only(self) -> int:
        """Number of picks that no other retriever made."""
        return sum(pick.only for pick in self.picks)


@dataclass(frozen=True)
class Retrievals:
    """The picks of several retrievers for one question on one document.

    Attributes
    ----------
    query, text : str
        The question and the document.
    retrievals : tuple of Retrieval
        One for each retriever, in the order given.
    evidence : tuple of (int, int)
        Character spans of the document that answer the question, ascending and disjoint; empty if not known.
    evidence_sentences : tuple of (int, int)
        Spans of the sentences that overlap the evidence.
    counted_by : str
        Name of the scorer or encoding whose tokens are counted.
    path : str
        Where the document was read from; empty for a text that was not read from a file.
    """

    query: str
    text: str
    retrievals: tuple[Retrieval, ...]
    evidence: tuple[tuple[int, int], ...]
    evidence_sentences: tuple[tuple[int, int], ...]
    counted_by: str
    path: str = ""
    read: TextFile | None = None  # the document as it was read from a file, with its pages and headings

    @cached_property
    def document(self) -> TextFile:
        """The document as a `TextFile`, which finds lines, columns, pages and headings."""
        return self.read or TextFile(self.path, self.text)

    def touches_evidence(self, start: int, end: int) -> bool:
        """True if a span holds a part of the evidence."""
        return any(first < end and last > start for first, last in self.evidence)


def merged(spans: Iterable[tuple[int, int]], least_gap: int) -> list[tuple[int, int]]:
    """The spans in order; those with fewer than ``least_gap`` characters between them become one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start - found[-1][1] < least_gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
