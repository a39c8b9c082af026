"""A sentence with the number that is asked for comes before its siblings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.words import index_words
from spscanner_rag.scan.numbered_siblings import LEAD, before_siblings
from spscanner_rag.scanner import Scanner

BILLS = [f"Bill {number} from Anne came to {40 + number} marks." for number in range(9)]


def changed(logits: list[float], query: str, sentences: list[str]) -> list[float]:
    words = index_words(sentences, "english")
    return before_siblings(np.float32(logits), query, words).tolist()


def test_the_number_that_is_asked_for_decides_among_siblings() -> None:
    logits = [2.0, *[0.0] * 4, 1.0, *[0.0] * 3]
    expected = list(logits)
    expected[5] = 2.0 + LEAD
    query = "Which bill came to 45 marks?"
    assert changed(logits, query, BILLS) == pytest.approx(expected)


def test_who_is_ahead_anyway_stays() -> None:
    logits = [0.0] * 5 + [3.0] + [0.0] * 3
    assert changed(logits, "Which bill came to 45 marks?", BILLS) == logits


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("Which bill came to 45 marks?", ["Bob paid all of it in 1811.", *BILLS[1:]]),
        ("Which bill came to 45 marks?", ["Bill came from Anne to marks.", *BILLS[1:]]),
        ("Which bill came to 99 marks?", BILLS),
        ("Which bill from Anne came to it?", BILLS),
        # a sibling has another word, or another number, that is asked for
        (
            "Which bill from Bob came to 45 marks?",
            ["Bill 0 from Bob came to 40 marks.", *BILLS[1:]],
        ),
        ("Did bill 0 or another come to 45 marks?", BILLS),
    ],
)
def test_others_do_not_change(query: str, sentences: list[str]) -> None:
    logits = [2.0, *[0.0] * 4, 1.0, *[0.0] * 3]
    assert changed(logits, query, sentences) == logits


def test_a_number_that_many_have_tells_nothing() -> None:
    sentences = ["Bill 1 came to 45 marks."] * 4 + ["Bill 1 came to 46 marks."]
    logits = [0.0] * 4 + [2.0]
    assert changed(logits, "Which bill came to 45 marks?", sentences) == logits


@given(
    st.lists(st.floats(-9, 9, width=16), min_size=9, max_size=9),
    st.text("which bill 0123456789", max_size=30),
)
def test_nothing_gets_less_and_others_keep_their_order(
    logits: list[float], query: str
) -> None:
    words = index_words(BILLS, "english")
    before = np.float32(logits)
    after = before_siblings(before, query, words)
    assert (after >= before).all()
    assert before.tolist() == np.float32(logits).tolist()
    assert after.max() <= before.max() + np.float32(LEAD) + 1e-5


def test_no_text() -> None:
    assert changed([], "Which bill came to 45?", []) == []


@pytest.mark.parametrize("measure", ["25 km", "25km", "25 kilometres"])
def test_a_measure_is_found_among_many(bundled: Scanner, measure: str) -> None:
    towns = ("Riga", "Oslo", "Turku", "Visby", "Gdansk", "Narva", "Tallinn", "Memel")
    sentences = []
    for number in range(40):
        first = towns[number % 8]
        last = towns[(3 * number + 1) % 8]
        sentences.append(
            f"The road from {first} to {last} by gate {number} is {7 + 3 * number}km"
            " long."
        )
    result = bundled.scan(f"Which road is {measure} long?", " ".join(sentences))
    (first_found,) = result.select(top_k=1)
    assert " 25km " in first_found.text
