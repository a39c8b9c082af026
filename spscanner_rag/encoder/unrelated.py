"""Where an encoder's cosines begin: those of texts that have nothing in common."""

from typing import Final

import numpy as np

from spscanner_rag.encoder.sentence_encoder import SentenceEncoder

UNRELATED: Final = (
    (
        "Who painted the ceiling of the chapel?",
        "The pump is switched off before the filter is rinsed.",
    ),
    (
        "How many eggs does the cake need?",
        "Members vote by a show of hands at the annual meeting.",
    ),
    (
        "When does the museum open on Sundays?",
        "The enzyme loses its activity above sixty degrees.",
    ),
    (
        "Why did the server stop answering?",
        "In spring the storks return to the village church.",
    ),
    (
        "What is the fine for late payment?",
        "She had never liked the sea, not even as a child.",
    ),
    (
        "Which glands produce saliva?",
        "The parser returns an empty list if no file was found.",
    ),
    (
        "How is the tent put up?",
        "Revenue from licences fell by four percent last year.",
    ),
    ("Where was the treaty signed?", "Stir the sauce until it begins to thicken."),
)
"""Questions, and sentences that answer none of them."""


def unrelated_cosines(encoder: SentenceEncoder) -> tuple[float, float]:
    """Return mean and standard deviation of an encoder's cosines of unrelated texts."""
    sentences = [encoder.vectors([sentence]) for _, sentence in UNRELATED]
    cosines = []
    for question, _ in UNRELATED:
        question_vector = encoder.question(question)
        for vectors in sentences:
            cosines.append(float(vectors.cosines(question_vector)[0]))
    return float(np.mean(cosines)), max(float(np.std(cosines)), 1e-3)
