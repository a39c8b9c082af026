"""Retrievers whose scores are set by a test."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spscanner_rag.apps.compare import Comparison, compare
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Unit
from tests.fakes import ScoredBy, words


class Cutting(ScoredBy):
    """Also reports what units it cuts."""

    def __init__(self, logits: Any, unit: str = "sentence") -> None:
        super().__init__(logits)
        self.unit = unit

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        segmenter = segmenter_of(self.unit)  # type: ignore[arg-type]
        if blocks and self.unit == "sentence":
            return segment_blocks(text, blocks, segmenter.segment)
        return segmenter.segment(text)


FIRST = Cutting(lambda query, text, units: range(0, -len(units), -1))
LAST = Cutting(lambda query, text, units: range(len(units)))
"""Scores the first sentence best, or the last."""


def seeded(seed: int, unit: str = "sentence") -> Cutting:
    """Scores drawn with a seed."""
    return Cutting(
        lambda query, text, units: np.random.default_rng(seed).normal(size=len(units)),
        unit,
    )


def prefers(wanted: Sequence[int | str], unit: str = "sentence") -> Cutting:
    """Scores best the units that begin at given offsets or hold given words.

    The first of ``wanted`` is the best.
    """

    def rank(text: str, candidate: Unit) -> int:
        unit_text = text[candidate.start : candidate.end]
        for number, wish in enumerate(wanted):
            if isinstance(wish, str) and wish in unit_text:
                return number
            if wish == candidate.start:
                return number
        return 99

    def logits(query: str, text: str, units: Sequence[Unit]) -> list[float]:
        return [-rank(text, candidate) for candidate in units]

    return Cutting(logits, unit)


def comparison_of(text: str, *, top_k: int = 3, **options: object) -> Comparison:
    """Compare two retrievers of sentences and one of chunks."""
    scorers = {"a": seeded(0), "b": seeded(1), "chunks": seeded(9, "chunk")}
    return compare("Who?", text, scorers, top_k=top_k, count_tokens=words, **options)  # type: ignore[arg-type]
