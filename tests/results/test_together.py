"""One selection over several results."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.together import Together


def result(logits: list[float], word: str = "word") -> ScanResult:
    step = len(word) + 1
    text = " ".join([word] * len(logits))
    starts = np.arange(len(logits)) * step
    return ScanResult("q", text, starts, starts + len(word), np.array(logits, np.float32), len)


@given(
    st.lists(st.lists(st.integers(-9, 9), max_size=5), min_size=1, max_size=4),
    st.none() | st.integers(1, 8),
    st.integers(1, 3),
    st.none() | st.just(0.5),
)
def test_most_of_each(logits: list[list[int]], top_k: int | None, most: int, threshold: float | None) -> None:
    results = [result([float(value) for value in each]) for each in logits]
    choose = Selection(top_k=top_k, top_k_per_text=most, threshold=threshold, order="score")
    found = [(number, passage.start // 5) for number, passage in Together(results).select(choose)]
    ranked = sorted(
        ((number, place) for number, each in enumerate(logits) for place in range(len(each))),
        key=lambda each: (-logits[each[0]][each[1]], each),
    )
    allowed = [each for each in ranked if threshold is None or logits[each[0]][each[1]] >= 0]
    expected: list[tuple[int, int]] = []
    for number, place in allowed:
        if sum(other == number for other, _ in expected) < most:
            expected.append((number, place))
    assert found == expected[:top_k]
