"""A document that was prepared once, for any number of questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof

from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.lexical.words import TextWords
from spscanner_rag.results.passages import Located
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.text.blocks import Block, StructuredText
from spscanner_rag.text.units import Unit


@dataclass(frozen=True, eq=False)
class PreparedDocument:
    """A document with all that a scanner needs again for the next question on it.

    `Scanner.prepare` makes it. `Scanner.scan`, `scan_many` and `rank` of the same
    scanner take it in place of a text. It never changes, so threads may share it.

    Parameters
    ----------
    text : str
        The document's text.
    blocks : sequence of Block
        Its headings, fences and rows of tables; empty for a plain text.
    indexed : IndexedText
        Its units, their tokens and their words.
    vectors : SentenceVectors or None
        The vector of every unit; None if the checkpoint has no encoder.
    location : Located or None
        What knows the page and the headings of a character, if anything does.
    prepared_by : object
        The `Reading` of the scanner that prepared it.

    Examples
    --------
    >>> from spscanner_rag import Scanner
    >>> scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
    >>> document = scanner.prepare("Ships leave at noon. The keeper signed it.")
    >>> len(document.units)
    2
    >>> for question in ("Who signed it?", "When do ships leave?"):
    ...     print(scanner.scan(question, document).select(1)[0].text)
    The keeper signed it.
    Ships leave at noon.
    """

    text: str
    blocks: Sequence[Block]
    indexed: IndexedText
    vectors: SentenceVectors | None
    location: Located | None
    prepared_by: object

    @property
    def units(self) -> Sequence[Unit]:
        """What gets a score, in the order of the text."""
        return self.indexed.units

    @property
    def words(self) -> TextWords:
        """The words of the units."""
        return self.indexed.words

    @property
    def n_tokens(self) -> int:
        """How many tokens the document has for the scanner that prepared it."""
        return len(self.indexed.input_ids)

    @cached_property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes, its text included."""
        total = getsizeof(self.text) + self.indexed.nbytes
        if self.vectors is not None:
            total += self.vectors.nbytes
        return total

    def __repr__(self) -> str:
        size = f"{len(self.text):,} characters, {len(self.units):,} units"
        return f"PreparedDocument({size}, {self.nbytes:,} bytes)"


Document = str | StructuredText | PreparedDocument
"""What a scanner reads: a text, a text with blocks, or one that it has prepared."""
