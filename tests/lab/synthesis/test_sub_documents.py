"""Units of sub-documents."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.synthesis.sub_documents import Sentence, joined_units


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 50))
def test_units_hold_every_sentence_and_enough_tokens(
    tokens: list[int], least: int
) -> None:
    sentences = tuple(
        Sentence(10 * n, 10 * n + 9, count) for n, count in enumerate(tokens)
    )
    units = joined_units(sentences, least)
    held = [
        [s for s in sentences if start <= s.start and s.end <= end]
        for start, end in units
    ]
    assert [s for unit in held for s in unit] == list(sentences)
    assert all(sum(s.tokens for s in unit) >= least for unit in held) or len(units) == 1
