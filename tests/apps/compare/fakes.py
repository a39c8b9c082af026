"""Retrievers whose scores are set by a test."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Unit
from tests.fakes import ScoredBy


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
    """Scores the units best, in this order, that begin at given offsets or hold given words."""

    def logits(query: str, text: str, units: Sequence[Unit]) -> list[float]:
        def rank(own: Unit) -> int:
            words = text[own.start : own.end]
            liked = (
                one in words if isinstance(one, str) else one == own.start
                for one in wanted
            )
            return next((place for place, likes in enumerate(liked) if likes), 99)

        return [-rank(each) for each in units]

    return Cutting(logits, unit)
