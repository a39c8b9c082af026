"""The scanner with less context than the document, to measure what the context is worth (the paper's Figure 4)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.retrieval.shared_scanners import shared_scanner
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, never
from spscanner_rag.text.units import Unit

CONTEXT_TOKENS = 1024  # the paper's short context

ALONE = Setting("scanner", variants=("sentence alone",))
CHUNKS = Setting("scanner", variants=("chunk of 1,024 tokens alone",))
WINDOWS = Setting("scanner", variants=("1,024 tokens",))


def ablated(device: str, dtype: str) -> dict[Setting, Scorer]:
    """The scanner with three shorter contexts; see `Scanner.from_pretrained` for the arguments.

    `ALONE` reads single sentences. `CHUNKS` reads independent chunks, as the paper does. `WINDOWS` reads
    half-overlapping windows and averages their logits; its lexical channel knows the whole document.
    """
    scanner = shared_scanner(device=device, dtype=dtype)
    return {
        ALONE: Chunked(scanner),
        CHUNKS: Chunked(scanner, CONTEXT_TOKENS),
        WINDOWS: shared_scanner(device=device, dtype=dtype, window_tokens=CONTEXT_TOKENS),
    }


class Chunked:
    """Scores every chunk of whole units as a text of its own, with its own lexical statistics.

    A unit of more than ``max_tokens`` is a chunk of its own, so by default every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int = 1) -> None:
        self.scanner, self.max_tokens = scanner, max_tokens

    def score_units(
        self, query: str, text: str, units: Sequence[Unit], *, cancelled: Cancelled = never
    ) -> NDArray[np.float32]:
        """One logit for each unit: (units,)."""
        chunks = [(query, *_cut_out(text, chunk)) for chunk in self._chunks(text, units)]
        logits = self.scanner.score_units_many(chunks, cancelled=cancelled)
        return np.concatenate([np.empty(0, np.float32), *logits])

    def _chunks(self, text: str, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """Successive runs of units, each as long as ``max_tokens`` allows."""
        first = tokens = 0
        ends = [*(unit.start for unit in units[1:]), *(unit.end for unit in units[-1:])]
        for number, (unit, end) in enumerate(zip(units, ends, strict=True)):
            own = self.scanner.count_tokens(text[unit.start : end])  # with the white space after it
            if number > first and tokens + own > self.max_tokens:
                yield units[first:number]
                first, tokens = number, 0
            tokens += own
        if units:
            yield units[first:]


def _cut_out(text: str, units: Sequence[Unit]) -> tuple[str, list[Unit]]:
    """The text of a chunk, and its units as units of that text."""
    begin, end = units[0].start, units[-1].end
    reads = [*(unit.start for unit in units), end]
    return text[begin:end], [
        Unit(unit.start - begin, unit.end - begin, text[unit.start : following])
        for unit, following in zip(units, reads[1:], strict=True)
    ]
