"""One selection over the results of several documents that one question was asked of."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import Selection, rank
from spscanner_rag.results.sentences import Passage

_BETWEEN_TEXTS = "\n\n"


class Selected(NamedTuple):
    """What was selected of one document."""

    passages: tuple[Passage, ...]  # selected sentences and their neighbours, in the order asked for
    picks: tuple[Passage, ...]  # those that were selected for their score, in the same order
    ranks: dict[int, int]  # rank from 1 of each pick among the picks of all documents, by its start


def select_together(results: Sequence[ScanResult], selection: Selection) -> list[Selected]:
    """Select sentences of several documents as if they were one: `ScanResult.select` over all of them.

    Scores compare where the documents were scanned as one collection (``Scanner.scan_many(..., together=True)``).
    Neighbours stay within a document.

    Parameters
    ----------
    results
        One for each document, at least one, all of one question.
    selection
        Without ``merge`` and ``top_k_per_text``.

    Returns
    -------
    list of Selected
        One for each document, in the order given; offsets are those of the document.

    Raises
    ------
    ValueError
        For a token budget where nothing counts tokens.
    """
    together = _joined(results)
    passages = together.selected(selection)
    best = {passage.start for passage in together.selected(replace(selection, context=0))}
    by_score = together.starts[rank(together.logits)].tolist()
    ranks = {start: place for place, start in enumerate(filter(best.__contains__, by_score), start=1)}
    found = []
    for result, offset in zip(results, _offsets(results), strict=True):
        inside = range(offset, offset + len(result.text) + 1)
        own = [passage for passage in passages if passage.start in inside]
        moved = [Passage(each.text, each.start - offset, each.end - offset, each.score) for each in own]
        picks = [new for new, old in zip(moved, own, strict=True) if old.start in best]
        own_ranks = {pick.start: ranks[pick.start + offset] for pick in picks}
        found.append(Selected(tuple(moved), tuple(picks), own_ranks))
    return found


def _joined(results: Sequence[ScanResult]) -> ScanResult:
    if len(results) == 1:
        return results[0]
    offsets = _offsets(results)
    return ScanResult(
        results[0].query,
        _BETWEEN_TEXTS.join(result.text for result in results),
        np.concatenate([each.starts + offset for each, offset in zip(results, offsets, strict=True)]),
        np.concatenate([each.ends + offset for each, offset in zip(results, offsets, strict=True)]),
        np.concatenate([result.logits for result in results]),
        results[0].count_tokens,
        np.repeat(np.arange(len(results)), [len(result.logits) for result in results]),
    )


def _offsets(results: Sequence[ScanResult]) -> list[int]:
    """Where each document begins in the joined text."""
    lengths = [len(result.text) + len(_BETWEEN_TEXTS) for result in results]
    return [0, *accumulate(lengths[:-1])]
