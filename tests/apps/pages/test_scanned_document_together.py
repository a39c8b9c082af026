"""What is selected from each of several documents."""

import numpy as np
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
    return ScanResult(
        "q", text, starts, starts + len(word), np.array(logits, np.float32), len
    )


def select_together(
    results: list[ScanResult], selection: Selection
) -> list[ScannedDocument]:
    documents = [TextFile("", one.text) for one in results]
    return scanned_document.select_together(documents, results, selection)


@given(
    st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_a_single_document_is_select_and_ranks_are_by_score(
    logits: list[list[int]], top_k: int
) -> None:
    results = [result([float(value) for value in each]) for each in logits]
    found = select_together(results, Selection(top_k=top_k, order="score"))
    assert select_together(results[:1], Selection(top_k=top_k))[0].passages == results[
        0
    ].select(top_k)
    ranked = sorted(
        (rank, number, start)
        for number, each in enumerate(found)
        for start, rank in each.ranks.items()
    )
    assert [rank for rank, _, _ in ranked] == list(
        range(1, min(top_k, sum(map(len, logits))) + 1)
    )
    scores = [results[number].logits[start // 5] for _, number, start in ranked]
    assert (
        scores
        == sorted((value for each in logits for value in each), reverse=True)[
            : len(scores)
        ]
    )
