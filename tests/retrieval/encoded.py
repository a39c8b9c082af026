"""Texts and an encoder that knows only a few words."""

from collections.abc import Sequence

from spscanner_rag.encoder.meaning_weights import MeaningWeights

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
