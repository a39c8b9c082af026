"""The picks of several retrievers from one document."""

from dataclasses import dataclass

from spscanner_rag.files.documents import TextFile


@dataclass(frozen=True, slots=True)
class Pick:
    """One unit that a retriever picked: a span of characters, and the tokens of the unit by itself.

    ``score``, from 0 to 1, cannot be compared between retrievers. ``rank`` 1 is the retriever's best, of all
    documents compared together. ``only``: no pick of another retriever shares half of the shorter of the two.
    """

    start: int
    end: int
    score: float
    rank: int
    tokens: int
    only: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of one retriever, which cut the document into ``units`` and ``picks`` the best, best first.

    ``seconds`` to cut and score the document, without loading a model; ``seconds_again`` for one more question:
    less for a retriever that keeps what it made of the text. ``found``: for each evidence sentence, whether at
    least half of it lies inside the picks.
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
    """The picks of several retrievers, in the order given, for one question on one document.

    ``evidence`` has ascending, disjoint spans of characters that answer the question, ``evidence_sentences``
    those of the sentences that overlap it. ``counted_by`` names what counted tokens. The path of a document is
    empty for a text without a file.
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

    def touches_evidence(self, start: int, end: int) -> bool:
        """True if a span holds a part of the evidence."""
        return any(first < end and last > start for first, last in self.evidence)
