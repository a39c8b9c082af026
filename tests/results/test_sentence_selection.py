"""Selected sentences and passages, against plain rules."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from spscanner_rag.results import Passage, ScanResult
from tests.fakes import result_of, words
from tests.results.plain_selection import (
    CONTEXT,
    THRESHOLD,
    TOP_K,
    PlainSelection,
    numbers,
    results,
)


@given(results(), TOP_K, THRESHOLD, CONTEXT)
def test_same_sentences_as_the_plain_rules(
    result: ScanResult, top_k: float | None, threshold: float | None, context: int
) -> None:
    plain = PlainSelection(result)
    picks = plain.picks(top_k, threshold)
    passages = result.select(top_k=top_k, threshold=threshold, context=context)
    assert numbers(result, passages) == sorted(plain.all_of(picks, context))
    for passage in passages:
        sentence = result.sentences[result.starts.tolist().index(passage.start)]
        assert passage == Passage(
            sentence.text, sentence.start, sentence.end, sentence.score
        )


@given(results(), TOP_K, THRESHOLD, CONTEXT)
def test_merge(
    result: ScanResult, top_k: float | None, threshold: float | None, context: int
) -> None:
    arguments: dict[str, Any] = {
        "top_k": top_k,
        "threshold": threshold,
        "context": context,
    }
    single = result.select(**arguments)
    merged = result.select(**arguments, merge=True)
    inside = [
        [part for part in single if whole.start <= part.start < whole.end]
        for whole in merged
    ]
    assert [part for parts in inside for part in parts] == list(single)
    for whole, parts in zip(merged, inside, strict=True):
        assert (whole.start, whole.end) == (parts[0].start, parts[-1].end)
        assert whole.text == result.text[whole.start : whole.end]
        assert whole.score == max(part.score for part in parts)
        first, last = numbers(result, (parts[0], parts[-1]))
        assert last - first + 1 == len(parts)
    for left, right in pairwise(merged):
        last, following = (
            result.ends.tolist().index(left.end),
            result.starts.tolist().index(right.start),
        )
        assert following > last + 1 or not PlainSelection(result).in_block(
            last, following
        )
    assert result.context(**arguments) == "\n".join(passage.text for passage in merged)


def test_a_reach_beyond_both_ends_is_the_whole_block() -> None:
    text, starts = "a b c d e", np.arange(0, 9, 2)
    result = ScanResult(
        "q", text, starts, starts + 1, [9, 0, 0, 8, 0], blocks=[0, 0, 4, 4, 4]
    )  # type: ignore[arg-type]
    assert [p.text for p in result.select(1, context=10**12)] == ["a", "b"]
    assert [p.text for p in result.select(2, context=10**12, merge=True)] == [
        "a b",
        "c d e",
    ]


@pytest.mark.parametrize(
    ("always_keep", "expected"),
    [
        ([r"\d{4}"], [1, 2]),
        (["EUR", "^The"], [0, 2, 3]),
        (lambda sentence: sentence.endswith("mill."), [0, 2]),
        (None, [2]),
    ],
)
def test_what_has_a_pattern_is_kept_whatever_its_score_is(
    always_keep: Any, expected: list[int]
) -> None:
    sentences = [
        "The old mill.",
        "It is of 1911.",
        "Anne bought it.",
        "She paid 300 EUR.",
    ]
    result = result_of(sentences, [-3, -2, 4, -1], count_tokens=words)
    assert numbers(result, result.select(top_k=1, always_keep=always_keep)) == expected
    first = numbers(
        result, result.select(top_k=1, max_tokens=4, always_keep=always_keep)
    )
    assert first == (
        [2]
        if always_keep is None
        else [min(set(expected) - {2}, key=lambda n: -result.logits[n])]
    )
