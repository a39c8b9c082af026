"""What context is worth: the same scanner on single units and on short chunks.

This is the paper's Figure 4.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.names import NameParts
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, never
from spscanner_rag.text.units import Unit

CONTEXTS = {"sentence alone": 1, "chunk of 1,024 tokens alone": 1024}
"""Tokens that a scanner reads at once, by variant."""


def ablations(settings: Sequence[Setting]) -> list[Setting]:
    """The scanners that a run compares, each with both shorter contexts.

    Without a scanner among the settings it is the bundled one.

    Examples
    --------
    >>> from spscanner_lab.evaluation.ablations import ablations
    >>> from spscanner_rag.baselines.settings import Setting
    >>> [setting.label for setting in ablations([Setting("bm25")])]
    ['scanner, sentence alone', 'scanner, chunk of 1,024 tokens alone']
    """
    names = []
    for setting in settings:
        is_scanner = NameParts.of(setting.retriever).kind == "scanner"
        if is_scanner and setting.retriever not in names:
            names.append(setting.retriever)
    variants = []
    for name in names or ["scanner"]:
        variants += [Setting(name, variants=(context,)) for context in CONTEXTS]
    return variants


class Chunked(Scorer):
    """Scores every chunk of whole units as a separate text.

    Lexical statistics are those of the chunk alone. A unit of more than ``max_tokens``
    is a chunk by itself; so with 1, every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int) -> None:
        self.scanner = scanner
        self.max_tokens = max_tokens

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scanner, whose units are scored."""
        return (self.scanner,)

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
        scores = self.scanner.score_units_many(chunks, cancelled=cancelled)
        logits = [scores_of_chunk.logits for scores_of_chunk in scores]
        return np.concatenate([np.empty(0, np.float32), *logits])

    def _chunks(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """Consecutive runs of units, each as long as ``max_tokens`` allows."""
        first = 0
        tokens = 0
        for number, unit in enumerate(units):
            unit_tokens = self.scanner.count_tokens(unit.model_text)
            if number > first and tokens + unit_tokens > self.max_tokens:
                yield units[first:number]
                first = number
                tokens = 0
            tokens += unit_tokens
        if units:
            yield units[first:]


def _cut_out(text: str, units: Sequence[Unit]) -> tuple[str, list[Unit]]:
    begin = units[0].start
    end = units[-1].end
    # in reference units the model's text differs from the document's
    model_texts = [unit.model_text for unit in units]
    model_texts[0] = model_texts[0].lstrip()
    model_texts[-1] = model_texts[-1].rstrip()  # may be the same unit
    moved = []
    for unit, model_text in zip(units, model_texts, strict=True):
        moved.append(Unit(unit.start - begin, unit.end - begin, model_text))
    return text[begin:end], moved
