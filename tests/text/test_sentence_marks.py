"""Marks say what anybody sees of a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.sentence_marks import (
    MARKS,
    QUESTION_MARKS,
    question_marks,
    sentence_marks,
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Who signs the papers?", {"asks", "ends"}),
        ("\u8ab0\u304c\u7f72\u540d\u3057\u305f\uff1f", {"asks", "ends"}),
        ("Πόσο κοστίζει;", {"asks", "is_heading", "has_name"}),
        ("If α > β;", {"is_heading"}),
        ("Ann: Bob does.", {"ends", "has_speaker"}),
        ("\u25cf Rest at home", {"is_item"}),
        ("(a) a dog", {"is_item"}),
        ("Tycho Brahe", {"is_heading", "has_name"}),
        ("You need:", {"introduces"}),
        ("and left in 1811.", {"ends", "has_digit", "goes_on"}),
        ('He said "no".', {"ends", "has_quote"}),
        ("", set()),
    ],
)
def test_marks_of_a_sentence(sentence: str, expected: set[str]) -> None:
    (marks,) = sentence_marks([sentence])
    of_sentence = {name for name, mark in zip(MARKS, marks, strict=True) if mark == 1.0}
    assert of_sentence - {"length"} == expected


@given(st.lists(st.text(max_size=200), max_size=5))
def test_every_text_has_marks(sentences: list[str]) -> None:
    marks = sentence_marks(sentences)
    assert marks.shape == (len(sentences), len(MARKS))
    assert ((marks >= 0) & (marks < 3)).all()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who left?", "who"),
        ("In what year did it end?", "when"),
        ("Where is it?", "where"),
        ("How many were there?", "amount"),
        ("Why did she go?", "reason"),
    ],
)
def test_marks_of_a_question(question: str, name: str) -> None:
    assert question_marks(question)[QUESTION_MARKS.index(name)] == 1
