"""One retriever's turn in a comparison: what it picks from each document, and how long that takes."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.coverage import Spans
from spscanner_rag.results.together import Selected, select_together
from spscanner_rag.scorers import Scorer, score_batch, segment, words_together
from spscanner_rag.text.units import Unit

WARM_UP = "This sentence is read before the clock starts."


class Answer(NamedTuple):
    """What one retriever found in one document."""

    name: str
    units: int
    seconds: float
    seconds_again: float
    best: Selected

    @property
    def chosen(self) -> Spans:
        """The spans of its picks."""
        return Spans.of([Unit(each.start, each.end, "") for each in self.best.picks])


def ask(
    query: str,
    documents: Sequence[TextFile],
    name: str,
    scorer: Scorer,
    number: int,
    collection: CollectionIndex | None,
    started: Callable[[str], None] | None,
) -> list[Answer]:
    """Ask one retriever a question on each document; its picks are the best over all of them."""
    if collection is None and len(documents) > 1:
        collection = words_together(scorer, (segment(scorer, each.text, each.blocks) for each in documents))
    _asked(scorer, query, TextFile("", WARM_UP), None)  # what loads or compiles at first use is not timed
    results, seconds, again = [], [], []
    for document in documents:
        if started is not None:
            started(name)
        units, logits, taken = _asked(scorer, query, document, collection)
        seconds.append(taken)
        kept = getattr(scorer, "keeps_texts", False)
        again.append(_asked(scorer, query, document, collection)[2] if kept else taken)
        results.append(ScanResult(query, document.text, *Spans.of(units), logits))
    best = select_together(results, Selection(top_k=number, order="score"))
    return [
        Answer(name, len(result.logits), first, second, selected)
        for result, first, second, selected in zip(results, seconds, again, best, strict=True)
    ]


def _asked(
    scorer: Scorer, query: str, document: TextFile, collection: CollectionIndex | None
) -> tuple[list[Unit], NDArray[np.float32], float]:
    """The units of a document, their logits, and the seconds that cutting and scoring took."""
    began = time.perf_counter()
    units = segment(scorer, document.text, document.blocks)
    logits = next(score_batch(scorer, [(query, document.text, units)], collection=collection))
    return units, logits, time.perf_counter() - began
