"""What was selected from each of several documents together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spscanner_rag.results import Passage, ScanResult, Selection
from spscanner_rag.results.together import Together


class Selected(NamedTuple):
    """The selection from one document."""

    passages: tuple[Passage, ...]  # selected sentences and their neighbours, in the order asked for
    picks: tuple[Passage, ...]  # those that were selected for their score, in the same order
    ranks: dict[int, int]  # rank from 1 of each pick among the picks of all documents, by its start


def select_together(results: Sequence[ScanResult], selection: Selection) -> list[Selected]:
    """Select from each document, in the order given, without ``merge``; see `Together`."""
    together = Together(results)
    best = together.select(replace(selection, context=0, merge=False, order="score"))
    ranks = {(number, pick.start): place for place, (number, pick) in enumerate(best, start=1)}
    own: list[list[Passage]] = [[] for _ in results]
    for number, passage in together.select(selection):
        own[number].append(passage)
    return [
        Selected(
            tuple(passages),
            tuple(passage for passage in passages if (number, passage.start) in ranks),
            {start: place for (document, start), place in ranks.items() if document == number},
        )
        for number, passages in enumerate(own)
    ]
