"""The scanner with less context than the document, to see what the context is worth (the paper's Figure 4)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.retrieval.shared_scanners import shared_scanner
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer
from spscanner_rag.text.units import Unit

ALONE = "scanner, sentence alone"
WINDOWS = "scanner, 1,024 tokens"
WINDOW_TOKENS = 1024
"""The paper's short context, in half-overlapping windows; a unit's logit is the mean of its windows'."""


def ablated(device: str = "auto", dtype: str = "auto", model: str | None = None) -> dict[str, Scorer]:
    """A scanner that sees single sentences, and one that sees 1,024 tokens, by their names.

    Parameters
    ----------
    device, dtype, model
        As for `Scanner.from_pretrained`.
    """
    return {
        ALONE: SentenceAlone(shared_scanner(model, device=device, dtype=dtype)),
        WINDOWS: shared_scanner(model, device=device, dtype=dtype, window_tokens=WINDOW_TOKENS),
    }


class SentenceAlone:
    """Reads every unit by itself: the question, the unit, and nothing of the document before it.

    Parameters
    ----------
    scanner : Scanner
    """

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """The scanner's."""
        return self.scanner.count_tokens

    def segment(self, text: str) -> list[Unit]:
        """As the scanner does."""
        return self.scanner.segment(text)

    def score_units(
        self, query: str, text: str, units: Sequence[Unit], *, cancelled: Cancelled | None = None
    ) -> NDArray[np.float32]:
        """One logit for each unit: (units,)."""
        alone = [(query, part := text[start:end], [Unit(0, end - start, part)]) for start, end, _ in units]
        logits = self.scanner.score_units_many(alone, cancelled=cancelled)
        return np.concatenate([np.empty(0, np.float32), *logits])
