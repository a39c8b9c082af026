"""What context is worth: the same scanner on single units and on short chunks (the paper's Figure 4)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.names import NameParts
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.units import Unit

CONTEXTS = {"sentence alone": 1, "chunk of 1,024 tokens alone": 1024}
"""Tokens that a scanner reads at once, by variant, to measure what context is worth
(the paper's Figure 4)."""


def ablations(settings: Sequence[Setting]) -> list[Setting]:
    """The scanners that a run compares, or else the bundled one, each with both shorter contexts."""
    names = dict.fromkeys(
        s.retriever for s in settings if NameParts.of(s.retriever).kind == "scanner"
    )
    return [
        Setting(name, variants=(variant,))
        for name in names or ["scanner"]
        for variant in CONTEXTS
    ]


class Chunked:
    """Scores every chunk of whole units as a separate text, with lexical statistics of the chunk alone.

    A unit of more than ``max_tokens`` is a chunk by itself; so with 1, every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int) -> None:
        self.scanner, self.max_tokens = scanner, max_tokens
        self.scorers = (scanner,)  # its units are scored

    def score_units(
        self,
        query: str,
        text: str,
        units: Sequence[Unit],
        *,
        cancelled: Cancelled = never,
    ) -> NDArray[np.float32]:
        """One logit for each unit: (units,)."""
        chunks = [(query, *_cut_out(text, chunk)) for chunk in self._chunks(units)]
        logits = self.scanner.score_units_many(chunks, cancelled=cancelled)
        return np.concatenate([np.empty(0, np.float32), *logits])

    def _chunks(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """Consecutive runs of units, each as long as ``max_tokens`` allows."""
        first = tokens = 0
        for number, unit in enumerate(units):
            own = self.scanner.count_tokens(unit.model_text)
            if number > first and tokens + own > self.max_tokens:
                yield units[first:number]
                first, tokens = number, 0
            tokens += own
        if units:
            yield units[first:]


def _cut_out(text: str, units: Sequence[Unit]) -> tuple[str, list[Unit]]:
    begin, end = units[0].start, units[-1].end
    reads = [
        unit.model_text for unit in units
    ]  # in reference units it differs from the document's
    reads[0] = reads[0].lstrip()
    reads[-1] = reads[-1].rstrip()  # may be the same unit
    moved = ((unit.start - begin, unit.end - begin) for unit in units)
    return text[begin:end], [
        Unit(*span, read) for span, read in zip(moved, reads, strict=True)
    ]
