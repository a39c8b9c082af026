"""Picks that do not repeat each other, against brute force."""

import math
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lexical.words import stems_of
from spscanner_rag.results.diversity import diverse
from spscanner_rag.results.ranking import rank, sigmoid
from tests.fakes import result_of, words

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
    """The value of each pick when it was taken.

    Ties by rounding then do not count as differences.
    """
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
