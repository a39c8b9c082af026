"""The scanner with less context than the document, to measure what the context is worth (the paper's Figure 4)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.retriever_names import NameParts, Options, shared_scanner_of
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, never
from spscanner_rag.text.units import Unit

CONTEXT_TOKENS = 1024  # the paper's short context

VARIANTS = ("sentence alone", "chunk of 1,024 tokens alone", "1,024 tokens")


def scanners_among(settings: Sequence[Setting]) -> list[str]:
    """The names of the scanners that a run compares; the bundled one's if there is none."""
    names = dict.fromkeys(s.retriever for s in settings if NameParts.of(s.retriever).kind == "scanner")
    return list(names) or ["scanner"]


def ablations(name: str = "scanner") -> list[Setting]:
    """The settings of a scanner's three shorter contexts."""
    return [Setting(name, variants=(variant,)) for variant in VARIANTS]


def ablated(name: str, options: Options) -> dict[Setting, Scorer]:
    """A scanner, by its name, with three shorter contexts.

    The first reads its units alone. The second reads independent chunks, as the paper does. The third reads
    half-overlapping windows and averages their logits; its lexical channel knows the whole document.
    """
    scanner = shared_scanner_of(name, options)
    windows = shared_scanner_of(name, options, window_tokens=CONTEXT_TOKENS)
    scorers = Chunked(scanner), Chunked(scanner, CONTEXT_TOKENS), windows
    return dict(zip(ablations(name), scorers, strict=True))


class Chunked:
    """Scores every chunk of whole units as a text of its own, with its own lexical statistics.

    A unit of more than ``max_tokens`` is a chunk of its own, so by default every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int = 1) -> None:
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
