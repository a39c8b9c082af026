"""Clauses of Thai and Lao, which no mark ends."""

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.thai_clauses import LONGEST, SHORTEST, clause_starts

SHIPS = "เรือออกจากท่าเวลาเที่ยงวันทุกวันจันทร์และวันพุธตลอดฤดูร้อนของปีนั้น"
NOBODY = "แต่ไม่มีใครรอ"


def clauses(text: str) -> list[str]:
    return [text[start:] for start in clause_starts(text, [0])]


def test_a_conjunction_begins_a_clause_after_a_long_one() -> None:
    assert clauses(f"{SHIPS} {NOBODY}") == [NOBODY]
    assert clauses(f"เรือออก {NOBODY}") == []


def test_another_word_begins_one_only_after_a_very_long_one() -> None:
    words = " ".join(["เรือออกจากท่า"] * 60)
    starts = list(clause_starts(words, [0]))
    assert starts
    assert all(
        start - before > LONGEST for before, start in zip([0], starts, strict=False)
    )


def test_other_scripts_have_none() -> None:
    assert clauses("Ships leave at noon. " * 40) == []


def test_a_text_is_cut_there() -> None:
    units = SentenceSegmenter().segment(f"{SHIPS} {NOBODY}")
    assert [unit.model_text.strip() for unit in units] == [SHIPS, NOBODY]


@given(st.text("กขแต่ซึ่ง 1.\n", max_size=400), st.lists(st.integers(1, 399)))
def test_starts_increase_and_are_far_apart(text: str, inner: list[int]) -> None:
    starts = sorted({0, *(start for start in inner if start < len(text))})
    further = list(clause_starts(text, starts))
    assert further == sorted(set(further))
    for start in further:
        before = max(other for other in [*starts, *further] if other < start)
        assert start - before > SHORTEST
        assert text[start - 1] == " "
