"""Answers within a number of words, against a plain reading of the rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lab.answers.answer_scores import normalized
from spscanner_rag.lab.evaluation.word_budget import WORD_BUDGETS, answer_recall_at_words

WORDS = st.sampled_from(["The", "king,", "king", "of", "Norway.", "a", "Oslo"])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(WORDS, max_size=6), max_size=6), st.lists(WORDS, min_size=1, max_size=2))
def test_the_first_words_of_the_joined_units(units: list[list[str]], answer: list[str]) -> None:
    budgets = (1, 3, 8, 30)
    words = [word for unit in units for word in unit]
    wanted = normalized(" ".join(answer)).split()
    found = answer_recall_at_words([" ".join(unit) for unit in units], [" ".join(answer)], budgets)
    if not wanted:
        assert found == {}
        return
    for budget in budgets:
        held = normalized(" ".join(words[:budget])).split()
        expected = any(held[i : i + len(wanted)] == wanted for i in range(len(held)))
        assert found[budget] == float(expected)


def test_whole_words_any_answer_and_no_more_than_needed() -> None:
    def units() -> object:
        yield "He was king."
        yield "w " * max(WORD_BUDGETS)
        pytest.fail("read more than the largest budget needs")

    assert answer_recall_at_words(units(), ["kin", "duke"])[50] == 0.0  # type: ignore[arg-type]
    assert answer_recall_at_words(["He was king."], ["duke", "The King"]) == dict.fromkeys(WORD_BUDGETS, 1.0)
    assert answer_recall_at_words(["He"], []) == {}
