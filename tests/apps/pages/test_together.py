"""What is selected from each of several documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages import scanned_document
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection


def result(logits: list[float], word: str = "word") -> ScanResult:
    step = len(word) + 1
    starts = np.arange(len(logits)) * step
    text = " ".join([word] * len(logits))
    return ScanResult("q", text, starts, starts + len(word), np.array(logits, np.float32), len)


def select_together(results: list[ScanResult], selection: Selection) -> list[ScannedDocument]:
    documents = [TextFile("", one.text) for one in results]
    return scanned_document.select_together(documents, results, selection)


def test_neighbours_stay_in_their_document() -> None:
    found = select_together(
        [result([0, 1]), result([9, 0, 0])], Selection(top_k=1, context=2, order="document")
    )
    assert [[passage.start for passage in each.passages] for each in found] == [[], [0, 5, 10]]
    assert [len(each.picks) for each in found] == [0, 1]


def test_a_budget_holds_for_all() -> None:
    results = [result([3, 1]), result([2, 4])]
    found = select_together(results, Selection(top_k=None, max_tokens=10))
    assert [[passage.start for passage in each.picks] for each in found] == [[0], [5]]
    with pytest.raises(ValueError, match="top_k: got 0"):
        select_together(results, Selection(top_k=0))


@given(st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=4), st.integers(1, 12))
def test_a_single_document_is_select_and_ranks_are_by_score(logits: list[list[int]], top_k: int) -> None:
    results = [result([float(value) for value in each]) for each in logits]
    found = select_together(results, Selection(top_k=top_k, order="score"))
    assert select_together(results[:1], Selection(top_k=top_k))[0].passages == results[0].select(top_k)
    ranked = sorted(
        (rank, number, start) for number, each in enumerate(found) for start, rank in each.ranks.items()
    )
    assert [rank for rank, _, _ in ranked] == list(range(1, min(top_k, sum(map(len, logits))) + 1))
    scores = [results[number].logits[start // 5] for _, number, start in ranked]
    assert scores == sorted((value for each in logits for value in each), reverse=True)[: len(scores)]
