"""BM25 of units and their surroundings, counted afresh for each unit.

Index and match must give the same.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from spscanner_rag.lexical.words import stems_of


def stems(text: str) -> list[str]:
    return stems_of(re.findall(r"\w+", text.lower()))


def windows(parts: Sequence[Sequence[str]], reach: int) -> list[str]:
    """The text around each unit, which does not reach beyond the unit's document."""
    return [
        " ".join(part[max(0, i - reach) : i + reach + 1])
        for part in parts
        for i in range(len(part))
    ]


def slow_bm25(
    parts: Sequence[Sequence[str]], reach: int, idf: dict[str, float]
) -> list[float]:
    bags = [Counter(stems(text)) for text in windows(parts, reach)]
    mean = max(sum(bag.total() for bag in bags) / max(len(bags), 1), 1)
    norms = [1.5 * (0.25 + 0.75 * bag.total() / mean) for bag in bags]
    return [
        sum(
            rarity * bag[stem] * 2.5 / (bag[stem] + norm)
            for stem, rarity in idf.items()
        )
        for bag, norm in zip(bags, norms, strict=True)
    ]


def slow_idf(n: int, frequency: float) -> float:
    return math.log(1 + (n - min(n, frequency) + 0.5) / (min(n, frequency) + 0.5))


def slow_moments(scores: list[float], least: int, reach: int) -> tuple[float, float]:
    same = all(abs(a - b) <= 1e-9 for a, b in itertools.pairwise(scores))
    added = [0.0] * (least - len(scores)) if not (reach and same) else []
    values = np.array(scores + added or [0.0])
    return float(values.mean()), float(values.std())
