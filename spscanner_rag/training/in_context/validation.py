"""How well an in-context retriever finds the right document of a batch, against chance."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from spscanner_rag.baselines.in_context.model import BlockSearchModel
from spscanner_rag.baselines.in_context.search import search
from spscanner_rag.evaluation.statistics import Sample, paired_test
from spscanner_rag.training.in_context.batches import Batch


@dataclass(frozen=True, slots=True)
class Places:
    """Where the right documents stand among all documents of their batches."""

    queries: int
    documents: float  # of a batch, mean
    first: float  # share of the queries whose right document is first
    first_by_chance: float
    above: float  # mean share of the other documents that stand above the right one; 0.5 by chance
    p_value: float  # of ``above`` against 0.5, two-sided


def places_of_right_documents(model: BlockSearchModel, batches: Iterable[Batch]) -> Places:
    """Search the documents of each batch with each of its queries.

    The test flips signs: if a model knows nothing, the right document stands as often in the upper half as in the
    lower one. Queries of one right document are flipped together.

    Raises ``ValueError`` without a batch.
    """
    shares: list[float] = []
    first: list[bool] = []
    documents: list[int] = []
    asked: list[str] = []
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            keys = model.read_documents(batch.texts, batch.codes)
        for question, column in zip(batch.questions, batch.columns, strict=True):
            place = int(np.flatnonzero(search(model, keys, question).order() == column[0])[0])
            first.append(place == 0)
            shares.append(place / max(1, len(batch.texts) - 1))
            documents.append(len(batch.texts))
            asked.append(batch.texts[column[0]])
    if not asked:
        raise ValueError("got no batch; expected at least one")
    test = paired_test({"right": Sample(shares, asked)}, {"right": Sample([0.5] * len(asked), asked)})
    return Places(
        len(asked),
        float(np.mean(documents)),
        float(np.mean(first)),
        float(np.mean([1 / number for number in documents])),
        float(np.mean(shares)),
        test.p_value,
    )
