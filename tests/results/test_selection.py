"""Selection against a slow, plain reading of its rules."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lexical.words import stems_of
from spscanner_rag.results import Passage, ScanResult, Selection
from spscanner_rag.results.selection import (
    Aggregation,
    best_first,
    diverse,
    document_score,
    rank,
    sigmoid,
)
from tests.fakes import result_of, words

# Few distinct values, so that equal logits are common.
LOGITS = st.sampled_from([-90.0, -7.5, -1.0, 0.0, 0.25, 3.0, 40.0, 88.0])
GAPS = st.sampled_from([" ", "\n", "", "  ", "\n\n\n", "\r\n", "\t \t ", " " * 40])


@st.composite
def results(
    draw: st.DrawFn, count_tokens: Callable[[str], int] | None = words
) -> ScanResult:
    lengths = draw(st.lists(st.integers(1, 12), max_size=25))
    text, starts, ends = draw(GAPS), [], []
    for number, length in enumerate(lengths):
        starts.append(len(text))
        text += " ".join([f"w{number}"] * length)
        ends.append(len(text))
        text += draw(GAPS)
    logits = draw(st.lists(LOGITS, min_size=len(lengths), max_size=len(lengths)))
    numbers = st.lists(
        st.integers(0, 4), min_size=len(lengths), max_size=len(lengths)
    ).map(sorted)
    return ScanResult(
        "q", text, starts, ends, logits, count_tokens, draw(st.none() | numbers)
    )


TOP_K = st.one_of(
    st.none(),
    st.integers(1, 30),
    st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False),
)
THRESHOLD = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.5, 0.0, 1.0]))
CONTEXT = st.integers(0, 4)


@dataclass
class PlainSelection:
    """The rules of `ScanResult.select`, one sentence at a time, for additive counters."""

    result: ScanResult

    def picks(self, top_k: float | None, threshold: float | None) -> list[int]:
        n = len(self.result.logits)
        if top_k is None:
            allowed = n
        elif isinstance(top_k, int):
            allowed = top_k
        else:
            allowed = max(10, math.ceil(Decimal(repr(top_k)) * n))
        order = sorted(range(n), key=lambda i: (-float(self.result.logits[i]), i))[
            :allowed
        ]
        return [
            i
            for i in order
            if threshold is None or self.result.sentences[i].score >= threshold
        ]

    def in_block(self, number: int, other: int) -> bool:
        """Whether ``other`` is a sentence in the same block."""
        blocks = self.result.block_of
        return 0 <= other < len(blocks) and blocks[other] == blocks[number]

    def all_of(self, picks: list[int], context: int) -> set[int]:
        return {
            j
            for i in picks
            for j in range(i - context, i + context + 1)
            if self.in_block(i, j)
        }

    def tokens(self, kept: list[int], count: Callable[[str], int]) -> int:
        """Tokens of the longer form: one sentence per line, or sentences as in the text with gaps marked."""
        result, apart, as_it_stands = self.result, "", ""
        for place, number in enumerate(sorted(kept)):
            sentence = result.text[result.starts[number] : result.ends[number]]
            apart += ("\n" if place else "") + sentence
            if number - 1 in kept and self.in_block(number, number - 1):
                as_it_stands += (
                    result.text[result.ends[number - 1] : result.starts[number]]
                    + sentence
                )
            else:
                as_it_stands += ("\n" if place else "") + sentence
        return max(count(apart), count(as_it_stands))

    def within(
        self,
        picks: list[int],
        context: int,
        max_tokens: int,
        count: Callable[[str], int] = words,
    ) -> set[int]:
        kept: list[int] = []

        def take(number: int) -> bool:
            if number in kept:
                return True
            if self.tokens([*kept, number], count) > max_tokens:
                return False
            kept.append(number)
            return True

        for number in picks:
            take(number)
        for number in list(kept):
            open_sides = [-1, 1]
            for distance in range(1, context + 1):
                for side in list(open_sides):
                    neighbour = number + side * distance
                    if not self.in_block(number, neighbour) or not take(neighbour):
                        open_sides.remove(side)
        return set(kept)


def numbers(result: ScanResult, passages: tuple[Passage, ...]) -> list[int]:
    starts = result.starts.tolist()
    return [starts.index(passage.start) for passage in passages]


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


# Counters for which the parts of a text add up to the whole.
ADDITIVE: list[Callable[[str], int]] = [
    words,
    len,
    lambda text: words(text) + 3 * text.count("\n"),
    lambda text: 2 * len(text) + 5 * text.count(" "),
]


@given(
    results(), st.sampled_from(ADDITIVE), TOP_K, THRESHOLD, CONTEXT, st.integers(1, 250)
)
def test_budget_is_filled_as_the_plain_rules_say(
    result: ScanResult,
    counter: Callable[[str], int],
    top_k: float | None,
    threshold: float | None,
    context: int,
    max_tokens: int,
) -> None:
    plain = PlainSelection(result)
    expected = plain.within(plain.picks(top_k, threshold), context, max_tokens, counter)
    passages = result.select(top_k, threshold, max_tokens, counter, context)
    assert numbers(result, passages) == sorted(expected)


# Counters for which the parts of a text do not add up to the whole.
COUNTERS: list[Callable[[str], int]] = [
    words,
    len,
    lambda text: len(text) ** 2 // 50,
    lambda text: 2 + len(text) // 4,
    lambda text: max(0, 60 - len(text)),
    lambda text: sum(map(ord, text)) % 17,
    lambda text: 3 * text.count("\n"),
]


def measured(
    result: ScanResult, counter: Callable[[str], int], arguments: dict[str, Any]
) -> list[int]:
    """Tokens of every form that a caller can get: passages joined, passages one by one, and the context."""
    counts = []
    for order in ("document", "score"):
        for merge in (False, True):
            passages = result.select(**arguments, order=order, merge=merge)  # type: ignore[arg-type]
            counts.append(
                counter("\n".join(passage.text for passage in passages))
                if passages
                else 0
            )
            counts.append(sum(counter(passage.text) for passage in passages))
    text = result.context(**arguments)
    return [*counts, counter(text) if text else 0]


@given(results(), st.sampled_from(COUNTERS), TOP_K, CONTEXT, st.integers(1, 120))
def test_no_counter_gets_more_than_the_budget(
    result: ScanResult,
    counter: Callable[[str], int],
    top_k: float | None,
    context: int,
    max_tokens: int,
) -> None:
    arguments = {
        "top_k": top_k,
        "context": context,
        "max_tokens": max_tokens,
        "count_tokens": counter,
    }
    assert max(measured(result, counter, arguments)) <= max_tokens


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


@pytest.mark.parametrize(
    ("top_k", "n_sentences", "expected"),
    [
        (None, 7, 7),
        (3, 7, 3),
        (50, 7, 7),
        (0.07, 100, 10),
        (0.07, 200, 14),
        (0.07, 1000, 70),  # 0.07 * 1000 is 70.00000000000001
        (0.5, 21, 11),
        (0.001, 5, 5),
        (0.001, 12_000, 12),
        (np.int64(4), 7, 4),
        (np.float64(0.25), 100, 25),
        (0.9, 0, 0),
    ],
)
def test_how_many_top_k_allows(
    top_k: float | None, n_sentences: int, expected: int
) -> None:
    scores = np.zeros(n_sentences)
    assert Selection(top_k=top_k).limit(n_sentences, scores) == expected


def test_an_argument_left_out_is_the_same_in_both_ways_to_select() -> None:
    named = inspect.signature(ScanResult.select).parameters
    for each in fields(Selection):
        assert each.name == "top_k_per_text" or named[each.name].default == each.default


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


def test_sigmoid_has_no_overflow_and_keeps_its_precision() -> None:
    logits = np.array(
        [-3e38, -700, -40, -1e-8, 0, 1e-8, 40, 700, 3e38], dtype=np.float32
    )
    with np.errstate(over="raise", invalid="raise"):
        scores = sigmoid(logits)
    assert scores[0] == 0
    assert scores[-1] == 1
    assert scores[4] == 0.5
    assert scores[2] == pytest.approx(math.exp(-40), rel=1e-12)
    assert (np.diff(scores) >= 0).all()
    assert scores.dtype == np.float64


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


@pytest.mark.parametrize("wrong", ["1911", [], ["("], [3], {"a"}])
def test_what_is_no_pattern_is_refused(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match=r"always_keep: got .*; expected a list of regular expressions"
    ):
        Selection(always_keep=wrong)


WORDS = st.sampled_from(["otter", "otters", "Heron", "swims", "lake", "12", "the"])
TEXTS = st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=1, max_size=9)
SCORES = st.sampled_from([-4.0, -1.0, 0.0, 0.5, 3.0])


def vector(texts: list[str], number: int) -> dict[str, float]:
    stems = [set(stems_of(re.findall(r"\w+", text.lower()))) for text in texts]
    return {
        stem: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for stem in stems[number]
        for n in [sum(stem in own for own in stems)]
    }


def likeness(texts: list[str], one: int, other: int) -> float:
    a, b = vector(texts, one), vector(texts, other)
    product = sum(weight * b.get(stem, 0.0) for stem, weight in a.items())
    lengths = math.sqrt(sum(w * w for w in a.values()) * sum(w * w for w in b.values()))
    return product / lengths if lengths else 0.0


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.data())
def test_brute_force_agrees(texts: list[str], data: st.DataObject) -> None:
    logits = np.array(
        data.draw(st.lists(SCORES, min_size=len(texts), max_size=len(texts))),
        np.float32,
    )
    diversity = data.draw(st.sampled_from([0.0, 0.3, 0.5, 0.77, 1.0]))
    most = data.draw(st.integers(1, len(texts)))
    scores, ranked = sigmoid(logits), rank(logits)
    expected: list[int] = []
    while len(expected) < most:
        values = {
            i: (
                diversity * scores[i]
                - (1 - diversity)
                * max((likeness(texts, i, j) for j in expected), default=0)
            )
            for i in ranked.tolist()
            if i not in expected
        }
        best = max(values.values())
        expected.append(next(i for i, value in values.items() if value > best - 1e-9))
    got = diverse(texts, scores, ranked, most, diversity)
    values_equal = [
        round(v, 6) for v in _values(texts, scores, got.tolist(), diversity)
    ]
    assert values_equal == [
        round(v, 6) for v in _values(texts, scores, expected, diversity)
    ]


def _values(
    texts: list[str], scores: np.ndarray, picks: list[int], diversity: float
) -> list[float]:
    """The value of each pick when it was taken, so that ties by rounding do not count as differences."""
    return [
        diversity * scores[pick]
        - (1 - diversity)
        * max((likeness(texts, pick, before) for before in picks[:place]), default=0)
        for place, pick in enumerate(picks)
    ]


REPEATED = result_of(
    [
        "Otters swim in the lake.",
        "The otter swims in lakes.",
        "Herons stand still.",
        "It rained.",
    ],
    [3, 2.9, 1, -5],
    count_tokens=words,
)


def test_a_repetition_is_passed_over_before_budgets() -> None:
    plain = [passage.text for passage in REPEATED.select(2)]
    assert plain == ["Otters swim in the lake.", "The otter swims in lakes."]
    assert REPEATED.select(2, diversity=1.0) == REPEATED.select(2)
    chosen = ["Otters swim in the lake.", "Herons stand still."]
    assert [passage.text for passage in REPEATED.select(2, diversity=0.6)] == chosen
    assert REPEATED.context(2, diversity=0.6) == "\n".join(chosen)
    within = REPEATED.select(None, max_tokens=10, diversity=0.6)
    assert [passage.text for passage in within] == [*chosen, "It rained."]
    assert len(REPEATED.select(None, threshold=0.5, diversity=0.2)) == 3, (
        "the threshold is on scores"
    )


def test_an_elbow_ends_at_the_steepest_fall() -> None:
    scores = [0.95, 0.9, 0.4, 0.35, 0.1]
    result = result_of(
        [f"w{i}" for i in range(5)], [math.log(s / (1 - s)) for s in scores]
    )
    assert len(result.select("elbow")) == 2
    assert len(result.select("elbow:3-4")) == 4
    assert len(result.select("elbow:1-1")) == 1
    assert len(result.select("elbow:8-9")) == 5
    assert len(result.select("elbow", threshold=0.92)) == 1
    assert len(result.select("elbow", diversity=0.5)) == 2
    assert result_of([], []).select("elbow") == ()


FOUR = np.array([-2.0, 3.0, 0.0, 1.0], np.float32)
ALL: tuple[Aggregation, ...] = ("max", "mean", "mean_top", "sum", "logsumexp")


def test_by_hand() -> None:
    assert document_score(FOUR) == 3.0
    assert document_score(FOUR, "mean_top") == pytest.approx(4 / 3)
    assert document_score(FOUR, "mean_top", top=1) == 3.0
    assert document_score(FOUR, "mean_top", top=50) == pytest.approx(0.5)
    assert document_score(FOUR, "mean") == pytest.approx(0.5)
    assert document_score(FOUR, "first") == FOUR[0]
    assert document_score(FOUR[:1], "long") == FOUR[0]
    assert document_score(np.zeros(5), "sum") == 2.5
    assert document_score(np.zeros(5), "logsumexp") == pytest.approx(np.log(5))


@pytest.mark.parametrize("aggregation", ALL)
def test_documents_in_order(aggregation: Aggregation) -> None:
    documents = [
        np.array([-9.0]),
        np.array([]),
        FOUR,
        np.array([-9.0]),
        np.array([4.0, 4.0, 4.0]),
    ]
    scores = [document_score(logits, aggregation) for logits in documents]
    assert best_first(scores) == [
        (number, scores[number]) for number in (4, 2, 0, 3, 1)
    ]


def test_errors() -> None:
    with pytest.raises(
        ValueError, match="aggregation is 'median'; expected one of max, mean"
    ):
        document_score(FOUR, "median")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r'"long" got \d+ logits; expected one: use unit="document"'
    ):
        document_score(FOUR, "long")
    with pytest.raises(ValueError, match="top is 0"):
        document_score(FOUR, top=0)
    for bad in ([np.nan], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="one finite number for each sentence"):
            document_score(np.array(bad))
