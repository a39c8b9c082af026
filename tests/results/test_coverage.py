"""Evidence sentences inside retrieved chunks, against counting characters."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.results.coverage import NEVER, Spans, evidence_ranks
from spscanner_rag.text.units import Unit

SPAN_LISTS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(
        lambda s: (s[0], s[0] + s[1])
    ),
    min_size=1,
    max_size=8,
)


def spans(*pairs: tuple[int, int]) -> Spans:
    return Spans.of([Unit(start, end, "") for start, end in pairs])


@settings(max_examples=60)
@given(SPAN_LISTS, SPAN_LISTS, st.data())
def test_equals_counting_characters(
    chunks: list[tuple[int, int]], sentences: list[tuple[int, int]], data: st.DataObject
) -> None:
    scores = data.draw(
        st.lists(st.integers(0, 3), min_size=len(chunks), max_size=len(chunks))
    )
    order = sorted(range(len(chunks)), key=lambda chunk: -scores[chunk])
    found = evidence_ranks(
        spans(*chunks), np.array(scores, np.float32), spans(*sentences)
    )
    for k in (1, 2, 5, 10):
        held = {character for chunk in order[:k] for character in range(*chunks[chunk])}
        inside = [
            sum(c in held for c in range(*sentence)) / len(range(*sentence))
            for sentence in sentences
        ]
        assert (found <= k).tolist() == [share >= 0.5 for share in inside]


def test_no_units_cover_nothing() -> None:
    assert evidence_ranks(spans(), np.zeros(0), spans((0, 5))).tolist() == [NEVER]
