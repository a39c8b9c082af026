"""The beginnings of documents, of a number of tokens, as units."""

from dataclasses import dataclass, field
from functools import cache

from tokenizers import Tokenizer

from spscanner_rag.baselines.bundled_token_counter import bundled_tokenizer
from spscanner_rag.text.spans import trim_span
from spscanner_rag.text.tokenization_in_parts import first_tokens
from spscanner_rag.text.units import Unit


@dataclass(frozen=True, slots=True)
class DocumentStart:
    """Makes one unit of the first tokens of a text; what follows is not read.

    Parameters
    ----------
    tokens : int
        The most tokens of the unit.
    tokenizer : Tokenizer
        What they are counted with.
    """

    tokens: int
    tokenizer: Tokenizer = field(repr=False, hash=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the unit, such as "document:512"."""
        return f"document:{self.tokens}"

    def segment(self, text: str) -> list[Unit]:
        """Return the unit, or none for a text without words."""
        beginning = first_tokens(self.tokenizer, text, self.tokens)
        span = trim_span(beginning, 0, len(beginning))
        if span is None:
            return []
        return [Unit(*span, beginning)]


@cache
def document_starts(tokens: int) -> DocumentStart:
    """The segmenter whose tokens are those of the bundled checkpoint.

    Examples
    --------
    >>> from spscanner_lab.evaluation.document_starts import document_starts
    >>> document_starts(3).segment("It rained all day, and then it snowed.")
    [Unit(start=0, end=9, model_text='It rained')]
    """
    return DocumentStart(tokens, bundled_tokenizer())
