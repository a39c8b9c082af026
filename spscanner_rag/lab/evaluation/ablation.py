"""The scanner with less context than the document, to measure what the context is worth (the paper's Figure 4)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.retriever_names import NameParts
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.units import Unit

CONTEXTS = {"sentence alone": 1, "chunk of 1,024 tokens alone": 1024}
"""Tokens of the texts that are read, by variant; 1,024 are the paper's short context."""


def ablations(settings: Sequence[Setting]) -> list[Setting]:
    """Each scanner that a run compares, else the bundled one, with both shorter contexts."""
    names = dict.fromkeys(s.retriever for s in settings if NameParts.of(s.retriever).kind == "scanner")
    return [Setting(name, variants=(variant,)) for name in names or ["scanner"] for variant in CONTEXTS]


class Chunked:
    """Scores every chunk of whole units as a text of its own, with its own lexical statistics.

    A unit of more than ``max_tokens`` is a chunk of its own, so with 1 every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int) -> None:
        self.scanner, self.max_tokens = scanner, max_tokens
        self.scorers = (scanner,)  # whose units are scored

    def score_units(
        self, query: str, text: str, units: Sequence[Unit], *, cancelled: Cancelled = never
    ) -> NDArray[np.float32]:
        """One logit for each unit: (units,)."""
        chunks = [(query, *_cut_out(text, chunk)) for chunk in self._chunks(units)]
        logits = self.scanner.score_units_many(chunks, cancelled=cancelled)
        return np.concatenate([np.empty(0, np.float32), *logits])

    def _chunks(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """Successive runs of units, each as long as ``max_tokens`` allows."""
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
    reads = [unit.model_text for unit in units]  # reference units are not read as the text has them
    reads[0] = reads[0].lstrip()
    reads[-1] = reads[-1].rstrip()
    return text[begin:end], [
        Unit(unit.start - begin, unit.end - begin, read) for unit, read in zip(units, reads, strict=True)
    ]
