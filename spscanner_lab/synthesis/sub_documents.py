"""Stretches of documents that questions are made from, and their units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence of a sub-document: its span and its number of tokens."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SubDocument:
    """A stretch of a document.

    Attributes
    ----------
    number : int
        From 0, in reading order.
    doc_id : str
        The document's id, followed by the place of the first character.
    source, title, text : str
        Source and title of the document; the text of the stretch.
    size : int
        Intended size, in tokens.
    sentences : tuple of Sentence
        Its sentences, with spans in ``text``.
    held_out : bool
        Whether its example belongs to the test file.
    """

    number: int
    doc_id: str
    source: str
    title: str
    text: str
    size: int
    sentences: tuple[Sentence, ...]
    held_out: bool = False

    @property
    def tokens(self) -> int:
        """The number of tokens in the sentences."""
        return sum(sentence.tokens for sentence in self.sentences)


def joined_units(
    sentences: Sequence[Sentence], least_tokens: int
) -> list[tuple[int, int]]:
    """Return spans of units: sentences joined until each unit has ``least_tokens``.

    A short last one is joined with the unit before it.

    Examples
    --------
    >>> from spscanner_lab.synthesis.sub_documents import Sentence, joined_units
    >>> sentences = [Sentence(0, 9, 3), Sentence(10, 19, 3), Sentence(20, 29, 6)]
    >>> joined_units(sentences, 6)
    [(0, 19), (20, 29)]
    """
    units: list[tuple[int, int]] = []
    tokens = least_tokens
    for sentence in sentences:
        if tokens >= least_tokens:
            units.append((sentence.start, sentence.end))
            tokens = sentence.tokens
        else:
            start, _ = units.pop()
            units.append((start, sentence.end))
            tokens += sentence.tokens
    if tokens < least_tokens and len(units) > 1:
        _, end = units.pop()
        start, _ = units.pop()
        units.append((start, end))
    return units
