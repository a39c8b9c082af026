"""A question's numbers in the form of the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.scanner import Scanner
from spscanner_rag.text.number_forms import MOST_NUMBERS, numbers_as_written


@pytest.mark.parametrize(
    ("asked", "written", "read"),
    [
        ("6,660", "6660", "6660"),
        ("6660", "6,660", "6,660"),
        ("6660", "6 660", "6 660"),
        ("1’234’567", "1.234.567", "1.234.567"),
        ("6660", "6660", "6660"),
        ("6660", "66,600", "6660"),
        ("6660", "16,660", "6660"),
        ("6660", "6,660.5", "6660"),
        ("666", "6 66", "666"),
        ("6.5", "65", "6.5"),
    ],
)
def test_a_number_takes_the_form_of_the_text(
    asked: str, written: str, read: str
) -> None:
    question = numbers_as_written(f"Who paid {asked} marks?", [f"Ann paid {written}."])
    assert question == f"Who paid {read} marks?"


def test_what_the_text_has_as_asked_stays() -> None:
    sentences = ["Ann paid 6,660.", "Bob paid 6660."]
    assert numbers_as_written("Who paid 6660?", sentences) == "Who paid 6660?"


def test_few_numbers_are_looked_up() -> None:
    question = " ".join(["6660"] * (MOST_NUMBERS + 1))
    read = numbers_as_written(question, ["6,660"])
    assert read == " ".join(["6,660"] * MOST_NUMBERS + ["6660"])


@given(st.text("0123456789,. abc", max_size=60), st.text("0123456789,. ", max_size=60))
def test_only_separators_change(question: str, sentence: str) -> None:
    read = numbers_as_written(question, [sentence])
    digits = [letter for letter in question if letter.isalnum()]
    assert [letter for letter in read if letter.isalnum()] == digits
    assert numbers_as_written(question, []) == question


def test_an_amount_is_found_in_its_other_form(bundled: Scanner) -> None:
    goods = ("flour", "oil", "rope", "tar", "salt", "timber", "cloth", "iron")
    sentences = []
    for number in range(60):
        amount = 1043 + 137 * number
        sentences.append(
            f"Invoice {number + 1} for {goods[number % 8]} came to {amount} marks."
        )
    result = bundled.scan("Which invoice came to 6,660 marks?", " ".join(sentences))
    (first,) = result.select(top_k=1)
    assert "6660" in first.text
