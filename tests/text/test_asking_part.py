"""The part of a question that asks, after a situation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.asking_part import (
    SHORTEST_QUESTION,
    asking_part,
)

SITUATION = (
    "I have worked at the mill since March and signed no paper. My cousin, who has the"
    " same work, was paid for the days when the river was too high. "
)


def test_a_situation_is_told_apart_from_what_is_asked() -> None:
    assert len(SITUATION) > SHORTEST_QUESTION - 40
    asked = "Do I get money for days without work?"
    assert asking_part(SITUATION + asked) == asked
    assert asking_part(asked + " " + SITUATION) == asked


def test_all_sentences_that_ask_belong_to_it() -> None:
    question = f"Do I get paid for it? {SITUATION}Whom should I write to?"
    assert asking_part(question) == "Do I get paid for it? Whom should I write to?"


def test_without_a_question_mark_the_last_sentence_asks() -> None:
    question = f"{SITUATION}Tell me what I have to write."
    assert asking_part(question) == "Tell me what I have to write."


@pytest.mark.parametrize("label", ["Question", "QUERY", "User", "Human"])
def test_what_stands_below_the_last_label_is_asked(label: str) -> None:
    question = f"Context: {SITUATION}\n{label}: and who pays for the boat?\n"
    assert asking_part(question) == "and who pays for the boat?"
    assert asking_part(f"{question}{label}:\n") == "and who pays for the boat?"


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?",
        "My cousin was paid. Was I?",  # short: what comes before is the subject
        f"{SITUATION}And me?",  # says nothing alone
        "What is paid for days when the river is too high, " * 4 + "and by whom?",
        "word " * 800,
        SITUATION + "They met at the lower bridge.",  # nothing asks
    ],
)
def test_other_questions_ask_as_a_whole(question: str) -> None:
    assert asking_part(question) is None


@given(st.text(max_size=400), st.integers(0, 40))
def test_the_part_is_made_of_the_questions_own_text(text: str, times: int) -> None:
    question = f"{text}{SITUATION * times}{text}"
    part = asking_part(question)
    if part is not None:
        characters = iter(question)
        assert all(character in characters for character in "".join(part.split()))
        assert len(part) < len(question)
