"""Questions changed so that their documents leave them open."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.near_misses import names_of, near_miss

TEXT = "In 1871 the ship of Anna Berg carried tar. A century on, in 1904, the heirs sold it to Otto Lind."


def changed(asked: str, other: str = "Who?") -> set[str | None]:
    questions = Question("q", asked, ((0, 42),)), Question("r", other, ())
    document = Document("d", "made", "dev", TEXT, questions)
    return {near_miss(questions[0], document, names_of(TEXT), random.Random(seed)) for seed in range(200)} - {
        None
    }


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("When did Anna Berg sail?", "When did Otto Lind sail?"),
        ("What did the ship carry in 1871?", "What did the ship carry in 1904?"),
        ("Who was the first owner?", "Who was the last owner?"),
        ("Who was not late?", "Who was not early?"),
        ("Why did it sail?", "Why did not it sail?"),
        ("Who carried tar?", "Who carried tar before 1904?"),
        ("Who carried tar?", "Who carried tar besides Otto Lind?"),
    ],
)
def test_the_ways(asked: str, near: str) -> None:
    assert near in changed(asked)


def test_the_end_of_another_question() -> None:
    assert "Who sailed to the islands of tar?" in changed(
        "Who sailed from the harbour?", "Who went to the islands of tar?"
    )
    assert "Who sailed of Anna Berg?" not in changed(
        "Who sailed from the harbour?", "What ship of Anna Berg?"
    )


def test_what_has_nothing_to_change_stays() -> None:
    question = Question("q", "Tar?", ((0, 3),))
    assert (
        near_miss(question, Document("d", "made", "dev", "Tar.", (question,)), [], random.Random(0)) is None
    )


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 10))
def test_any_question_is_changed_or_left(asked: str, text: str, seed: int) -> None:
    question = Question("q", asked, ())
    document = Document("d", "made", "dev", text, (question,))
    found = near_miss(question, document, names_of(text), random.Random(seed))
    assert found is None or found != asked
