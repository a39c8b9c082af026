"""Numbers, dates and measures are the same word however they are written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.words import index_words, query_words
from spscanner_rag.lexical.written_forms import words_of

WORD = re.compile(r"\w+")


def words(text: str, *, comma_is_decimal: bool = False) -> set[str]:
    return {
        word for _, _, word in words_of(text, WORD, comma_is_decimal=comma_is_decimal)
    }


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        (("4,194 marks", "4194 marks", "4 194 marks", "4'194 marks"), "4194"),
        (("1,234,567", "1.234.567", "1234567", "1 234 567"), "1234567"),
        (("12,34,567 rupees", "1234567 rupees"), "1234567"),
        (("1.5 m", "1.5m", "1.5 million", "1,500,000", "1.5 Mio", "$1.5M"), "1500000"),
        (("2 billion", "2bn", "2,000,000,000"), "2000000000"),
        (("5 km", "5km", "5 KM".lower()), "km"),
        (("5 km", "5km", "1.5km"), "5"),
        (
            ("4 March 1811", "March 4, 1811", "1811-03-04", "4th of March, 1811",
             "March 4th 1811", "4. März 1811", "04.03.1811", "4 mars 1811", "4/3/1811",
             "1811年3月4日", "le 4 mars 1811", "4 de marzo de 1811", "4 Mar. 1811"),
            "1811-03-04",
        ),
        (("in March 1811", "1811-03-04", "4 March 1811"), "1811-03"),
    ],
)  # fmt: skip
def test_forms_of_one_number_or_day_share_a_word(
    texts: tuple[str, ...], word: str
) -> None:
    for text in texts:
        assert word in words(text), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2,3", ["1", "2", "3"]),
        ("section 5.3.2", ["section", "5", "3", "2"]),
        ("192.168.100.200", ["192", "168", "100", "200"]),
        ("3D, 5G, 1990s, B2B, mp3", ["3D", "5G", "1990s", "B2B", "mp3"]),
        ("call 020 123 456", ["call", "020", "123", "456"]),
        ("4.194 and 1,5", ["4", "194", "and", "1", "5"]),
        ("0,123", ["0", "123"]),
        ("2019 120 345", ["2019", "120", "345"]),
        ("31 Foo 1811", ["31", "Foo", "1811"]),
        ("1811-13-45", ["1811", "13", "45"]),
    ],
)
def test_other_words_stay(text: str, expected: list[str]) -> None:
    assert [word for _, _, word in words_of(text, WORD)] == expected


def test_numbers_are_read_in_the_language_of_the_text_and_of_the_query() -> None:
    german = (
        "Die Rechnung von dem Müller ist auf 4.194 Mark. Sie war nicht für das Haus,"
        " und er hat sie auch bezahlt."
    )
    assert "4194" in index_words([german]).vocabulary
    assert "4194" in query_words(
        "Welche Rechnung ist die mit den 4.194 Mark?", "german"
    )
    assert "4194" in query_words("Which of the invoices came to 4,194 marks?", "german")
    assert "4194" not in index_words(["It came to 4.194 marks."]).vocabulary


@given(st.text("0123456789.,' kmMarch/-", max_size=40), st.booleans())
def test_starts_never_decrease_and_spans_lie_in_the_text(
    text: str, comma_is_decimal: bool
) -> None:
    before = 0
    for start, end, word in words_of(text, WORD, comma_is_decimal=comma_is_decimal):
        assert before <= start < end <= len(text)
        assert word
        before = start
