"""Where an in-context retriever puts the right document of a query among all documents of a batch."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from spscanner_rag.lab.in_context.batches import Batch
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import search


@dataclass(frozen=True, slots=True)
class Place:
    """Where the right document of a query stands."""

    right: str  # the document
    place: int  # from 0, the best
    documents: int  # of the batch

    @property
    def above(self) -> float:
        """The share of the other documents that stand above it; 0.5 by chance."""
        return self.place / max(1, self.documents - 1)


def places_of_right_documents(model: BlockSearchModel, batches: Iterable[Batch]) -> list[Place]:
    """Search the documents of each batch with each of its queries."""
    found = []
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            keys = model.read_documents(batch.texts, batch.codes)
        for question, column in zip(batch.questions, batch.columns, strict=True):
            place = int(np.flatnonzero(search(model, keys, question).order() == column[0])[0])
            found.append(Place(batch.texts[column[0]], place, len(batch.texts)))
    return found
