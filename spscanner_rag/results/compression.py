"""How much of a document a selection keeps, in tokens."""

from typing import NamedTuple

from spscanner_rag.text.token_counts import CountTokens, resolve_counter


class Compression(NamedTuple):
    """Tokens of a selection, and of the document that was read for it, counted by one tokenizer.

    Attributes
    ----------
    kept : int
        Tokens of the selected text.
    read : int
        Tokens of the document; the question and its repetitions do not count.
    """

    kept: int
    read: int

    @property
    def share(self) -> float:
        """``kept / read``; 0 for a document without tokens."""
        return self.kept / self.read if self.read else 0.0

    def __str__(self) -> str:
        return f"{self.kept:,} of {self.read:,} tokens kept ({100 * self.share:.1f} %)"


def compression_counter(counter: CountTokens | str | None) -> CountTokens:
    """What counts both sides; ``ValueError`` if nothing does."""
    if counter is None:
        raise ValueError(
            "compression: this result counts no tokens; expected count_tokens as well, for example "
            'count_tokens="o200k_base"'
        )
    return resolve_counter(counter)
