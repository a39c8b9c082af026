"""Windows of the published scanners, and their averaged logits."""

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.scan.query_on_text import QueryOnText
from spscanner_rag.text.tokenization import (
    TokenizedText,
)
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import average_logits, window_ranges

unit_lengths = st.lists(st.integers(1, 30), min_size=1, max_size=40)


def document_of(unit_ends: np.ndarray) -> TokenizedText:
    places = np.arange(unit_ends[-1] + 1, dtype=np.int32)
    return TokenizedText(
        [Unit(0, 1, "")] * len(unit_ends), places, places, places + 1, unit_ends
    )


def test_windows_are_the_originals(committed_oracles: Path) -> None:
    cases = json.loads((committed_oracles / "windows.json").read_text(encoding="utf-8"))
    assert cases
    for case in cases:
        unit_ends = np.array(case["sentence_end_indices"]) - case["query_tokens"]
        asked = QueryOnText(
            document_of(unit_ends), np.zeros(case["query_tokens"], np.int32)
        )
        found = []
        for first, last in window_ranges(unit_ends, case["window_size"]):
            sequence = asked.sequence(first, last)
            found.append(
                {
                    "sentence_range": [first, last],
                    "n_tokens": len(sequence.input_ids),
                    "sentence_end_indices": sequence.positions.tolist(),
                }
            )
        assert found == case["windows"]


@given(unit_lengths, st.integers(1, 100))
def test_every_unit_is_read_in_windows_as_large_as_asked(
    lengths: list[int], window_tokens: int
) -> None:
    unit_ends = np.cumsum(lengths) - 1
    ranges = window_ranges(unit_ends, window_tokens)
    read = {unit for first, last in ranges for unit in range(first, last + 1)}
    assert read == set(range(len(lengths)))
    assert ranges == sorted(ranges, key=lambda span: span[1])
    for first, last in ranges:
        tokens = sum(lengths[first : last + 1])
        # The original's last window may hold one token more, and a unit that fills a
        # window can bring a neighbour of one token.
        fills = max(lengths[first : last + 1]) >= window_tokens
        assert tokens <= window_tokens + 1 or (fills and last - first <= 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 12))
def test_units_that_share_a_token_are_read_too(
    lengths: list[int], window_tokens: int
) -> None:
    unit_ends = np.cumsum(lengths)
    ranges = window_ranges(unit_ends, window_tokens)
    assert {unit for first, last in ranges for unit in range(first, last + 1)} == set(
        range(len(lengths))
    )


def test_a_unit_longer_than_a_window_is_its_own() -> None:
    unit_ends = np.cumsum([5, 5, 100, 5, 5]) - 1
    assert (2, 2) in window_ranges(unit_ends, 20)


def test_no_units_no_windows() -> None:
    assert window_ranges(np.zeros(0, np.int64), 10) == []
    assert average_logits([], [], 0).shape == (0,)


def test_logits_are_averaged_over_the_windows_that_hold_a_unit() -> None:
    mean = average_logits(
        [(0, 1), (1, 2), (1, 3)], [[1.0, 2.0], [4.0, 5.0], [6.0, 7.0, 8.0]], 4
    )
    assert mean.dtype == np.float32
    assert mean.tolist() == [1.0, 4.0, 6.0, 8.0]
