"""The result of a comparison, with the picks of each retriever."""

from dataclasses import dataclass

from spscanner_rag.files.documents import TextFile


@dataclass(frozen=True, slots=True)
class Pick:
    """One unit that a retriever picked.

    Parameters
    ----------
    start, end : int
        Its characters in the document, end excluded.
    score : float
        From 0 to 1, and not comparable between retrievers.
    rank : int
        1 is the retriever's best in all documents compared together.
    tokens : int
        The number of tokens of the unit.
    only : bool
        Whether no other retriever's pick overlaps it by half of the shorter of the two.
    """

    start: int
    end: int
    score: float
    rank: int
    tokens: int
    only: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of one retriever for one document.

    Parameters
    ----------
    name : str
        The retriever.
    units : int
        The number of units it cut the document into.
    picks : tuple of Pick
        What it picked, best first.
    seconds : float
        The time to cut and score the document, without loading a model.
    found : tuple of bool
        For each evidence sentence, whether at least half of it lies inside the picks.
    seconds_again : float
        The time of another question, which is shorter for a retriever that keeps what
        it computed for the text.
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
        """Number of picks that no other retriever found."""
        return sum(pick.only for pick in self.picks)

    @property
    def n_found(self) -> int:
        """Number of evidence sentences that lie inside the picks."""
        return sum(self.found)


@dataclass(frozen=True, repr=False)
class ComparedDocument:
    """The picks of several retrievers for one question about one document.

    Parameters
    ----------
    query : str
        The question.
    document : TextFile
        The document, whose path is empty for a text without a file.
    retrievals : tuple of Retrieval
        The results in the order in which the retrievers were passed.
    evidence : tuple of (int, int)
        Ascending, disjoint spans of characters that answer the question.
    evidence_sentences : tuple of (int, int)
        The spans of the sentences that overlap the evidence.
    counted_by : str
        The name of the token counter.
    """

    query: str
    document: TextFile
    retrievals: tuple[Retrieval, ...]
    evidence: tuple[tuple[int, int], ...]
    evidence_sentences: tuple[tuple[int, int], ...]
    counted_by: str

    @property
    def text(self) -> str:
        """The text of the document."""
        return self.document.text

    @property
    def has_picks(self) -> bool:
        """True if a retriever picked something."""
        return any(retrieval.picks for retrieval in self.retrievals)

    def touches_evidence(self, start: int, end: int) -> bool:
        """True if a span overlaps the evidence."""
        return any(first < end and last > start for first, last in self.evidence)

    def __repr__(self) -> str:
        names = ", ".join(retrieval.name for retrieval in self.retrievals)
        return (
            f"Comparison({self.query!r:.60}, characters={len(self.text)}, retrievers:"
            f" {names})"
        )
