"""Forty short documents and questions about them."""

import random

from spscanner_lab.evidence.questions import Document, Question

SENTENCES = (
    "The keeper wrote the date in a book. ",
    "He signed the treaty. ",
    "It rained. ",
    "The bell rang. ",
)
QUESTIONS = ("who wrote the date?", "who signed the treaty?", "what rang?")
ANSWERS = (0, 1, 3)


def document(number: int, source: str = "letters") -> Document:
    """A document of four sentences in its own order.

    Three questions ask about one sentence each.
    """
    order = random.Random(number).sample(range(4), 4)
    text, spans = "", {}
    for place in order:
        spans[place] = (len(text), len(text) + len(SENTENCES[place].strip()))
        text += SENTENCES[place]
    questions = [
        Question(f"{number}-{place}", question, (spans[place],))
        for question, place in zip(QUESTIONS, ANSWERS, strict=True)
    ]
    return Document(
        f"d{number}",
        source,
        "",
        text,
        (*questions, Question("open", "who left?", (), False)),
    )


DOCUMENTS = [document(number) for number in range(40)]
