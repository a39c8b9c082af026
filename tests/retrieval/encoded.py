"""Texts and an encoder that knows only a few words."""

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Unit

TEXTS = [
    "Cut the leek. Boil the soup for an hour.",
    "The stallion kicked him. He was bitten in the arm.",
    "The council signed the treaty. The man wrote it down.",
    "",
]


WEIGHTS = MeaningWeights(sentence=10.0)


LIKE = (
    ("animal", "stallion", "horse"),
    ("hurt", "bitten", "kicked"),
    ("soup", "leek", "meal"),
)


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One dimension for each group of words with like meaning."""
    return [
        [0.01, *(float(any(word in text.lower() for word in group)) for group in LIKE)]
        for text in texts
    ]


class Encoded(Scorer):
    """A scorer with an encoder, which prepares nothing but units."""

    def __init__(self, encoder: object = embed) -> None:
        self._meaning = Meaning(TextEncoder(encoder), WEIGHTS)

    @property
    @override
    def meaning(self) -> Meaning:
        return self._meaning

    @override
    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> np.ndarray:
        return np.zeros(len(units), np.float32)
