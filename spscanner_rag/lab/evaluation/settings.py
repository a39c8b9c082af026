"""The settings that an evaluation compares: a retriever, the unit it ranks, and how much context it reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.retriever_names import NameParts, units_for
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.units import Unit

CONTEXTS = {"sentence alone": 1, "chunk of 1,024 tokens alone": 1024}
"""Tokens that a scanner reads at once, by variant, to measure what context is worth (the paper's Figure 4)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A retriever and the unit that it ranks."""

    retriever: str  # its name on the command line
    unit: str = "sentence"  # or "chunk", "passage", "document"; "" if it ranks nothing
    variants: tuple[str, ...] = ()  # changes to the plain setting, such as "sentence alone"

    @property
    def name(self) -> str:
        """Retriever and variants: the value of "retriever" in the files of a run."""
        return ", ".join((self.retriever, *self.variants))

    @property
    def key(self) -> tuple[str, str]:
        """Name and unit, which identify the setting in records and rows."""
        return self.name, self.unit

    @property
    def label(self) -> str:
        """The name of the setting in tables, such as "bm25, chunks of 150 words"."""
        kind, _, words = self.unit.partition(":")
        units = f", {kind}s of {words} words" if words else f", {kind}s"
        return self.name if self.unit in ("sentence", "") else self.name + units

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are probabilities, as those of a scanner are, local or behind a server."""
        return NameParts.of(self.retriever).kind in ("scanner", "remote")

    @property
    def has_index(self) -> bool:
        """Whether it looks questions up in an index that it has made of the texts, as BM25 and dense do.

        So does BlockSearch, which keeps the keys and values of all documents, and a cascade whose first stage has
        an index. A scanner, local or behind a server, reads the texts for each question.
        """
        name = NameParts.of(self.retriever)
        if name.kind == "cascade":
            return Setting(name.scorers[0]).has_index
        if name.scorers:
            return all(Setting(part).has_index for part in name.scorers)
        return name.kind in ("bm25", "dense", "blocksearch")


def settings_of(retrievers: Sequence[str], units: Sequence[str]) -> list[Setting]:
    """Every retriever with each unit that it ranks."""
    return [Setting(retriever, unit) for retriever in retrievers for unit in units_for(retriever, units)]


def ablations(settings: Sequence[Setting]) -> list[Setting]:
    """The scanners that a run compares, or else the bundled one, each with both shorter contexts."""
    names = dict.fromkeys(s.retriever for s in settings if NameParts.of(s.retriever).kind == "scanner")
    return [Setting(name, variants=(variant,)) for name in names or ["scanner"] for variant in CONTEXTS]


class Chunked:
    """Scores every chunk of whole units as a separate text, with lexical statistics of the chunk alone.

    A unit of more than ``max_tokens`` is a chunk by itself; so with 1, every unit is.
    """

    def __init__(self, scanner: Scanner, max_tokens: int) -> None:
        self.scanner, self.max_tokens = scanner, max_tokens
        self.scorers = (scanner,)  # its units are scored

    def score_units(
        self, query: str, text: str, units: Sequence[Unit], *, cancelled: Cancelled = never
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
    reads = [unit.model_text for unit in units]  # in reference units it differs from the document's
    reads[0] = reads[0].lstrip()
    reads[-1] = reads[-1].rstrip()  # may be the same unit
    moved = ((unit.start - begin, unit.end - begin) for unit in units)
    return text[begin:end], [Unit(*span, read) for span, read in zip(moved, reads, strict=True)]
