"""Retrievers whose scores a test decides."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.text.units import Unit


class InOrder:
    """The first unit is the best."""

    def __init__(self, unit: str = "sentence") -> None:
        self.unit = unit

    def segment(self, text: str) -> list[Unit]:
        return segmenter_of(self.unit).segment(text)  # type: ignore[arg-type]

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return -np.arange(len(units), dtype=np.float32)


class Backwards(InOrder):
    """The last unit is the best."""

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return np.arange(len(units), dtype=np.float32)


class Seeded(InOrder):
    """Scores that follow from a seed."""

    def __init__(self, seed: int, unit: str = "sentence") -> None:
        super().__init__(unit)
        self.seed = seed

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return np.random.default_rng(self.seed).normal(size=len(units)).astype(np.float32)


class Prefers(InOrder):
    """The units that begin at given offsets, or hold given words, are the best, in this order."""

    def __init__(self, wanted: Sequence[int | str], unit: str = "sentence") -> None:
        super().__init__(unit)
        self.wanted = list(wanted)

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        def rank(unit: Unit) -> int:
            own = text[unit.start : unit.end]
            liked = (one in own if isinstance(one, str) else one == unit.start for one in self.wanted)
            return next((place for place, likes in enumerate(liked) if likes), 99)

        return np.array([-rank(unit) for unit in units], np.float32)
