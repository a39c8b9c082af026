"""Two tiny sets of documents, and scorers with scores known beforehand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import Request, Scorer, UnitScores
from spscanner_rag.text.units import Unit

TEXT = (
    "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end"
    " came."
)
ANIMALS = ("otter", "heron", "badger", "vole")


def document(doc_id: str = "d", source: str = "wild") -> Document:
    """Five sentences; the first and the third are evidence of the two questions."""
    questions = (
        Question("q0", "Which otter swims?", ((4, 9),)),
        Question("q1", "What fell?", ((32, 36),)),
    )
    return Document(doc_id, source, f"Title of {doc_id}", TEXT, questions, split="dev")


def page(animal: str) -> Document:
    """Four sentences (14 words) about an animal, of which the second is evidence."""
    text = (
        f"The {animal} swims. It rained on the {animal}. Then it stopped. All went"
        " home."
    )
    start = text.index("It rained")
    question = Question(
        f"{animal}-q", f"Did it rain on the {animal}?", ((start, start + 9),)
    )
    return Document(animal, "wild", f"On {animal}s", text, (question,), split="dev")


class Given(Scorer):
    """Scores units by the best of their words, and keeps what it is asked."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.queries: list[str] = []
        self.texts: list[str] = []

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        self.queries.append(query)
        self.texts.append(text)
        found = [
            max(
                self.scores.get(word.strip("."), 0.0)
                for word in text[unit.start : unit.end].split()
            )
            for unit in units
        ]
        return np.array(found, np.float32)


class Counting(Scorer):
    """Keeps how many texts it is asked of, and how many units the collection has."""

    uses_collection = True

    def __init__(self) -> None:
        self.asked: list[tuple[int, int | None]] = []

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        cancelled: object = None,
        collection: CollectionIndex | None = None,
    ) -> list[UnitScores]:
        self.asked.append(
            (len(requests), None if collection is None else collection.n_units)
        )
        return [UnitScores(self.score_units(*request)) for request in requests]

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        return np.zeros(len(units), np.float32)
