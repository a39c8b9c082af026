"""A question's numbers, measures and dates in the form of the text."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.number_forms import (
    MOST_NUMBERS,
    SentencesWith,
    numbers_as_written,
    quantities_of,
)
from spscanner_rag.lexical.words import index_words
from spscanner_rag.scanner import Scanner


def having(sentences: Sequence[str], language: str = "english") -> SentencesWith:
    """Returns the sentences with a word."""
    words = index_words(sentences, language)

    def sentences_with(word: str) -> Iterator[str]:
        for number in words.units_with(word):
            yield sentences[number]

    return sentences_with


@pytest.mark.parametrize(
    ("asked", "written", "read"),
    [
        ("6,660", "6660", "6660"),
        ("6660", "6,660", "6,660"),
        ("6660", "6 660", "6 660"),
        ("1'234'567", "1.234.567", "1.234.567"),
        ("6660", "6660", "6660"),
        ("6660", "66,600", "6660"),
        ("6660", "16,660", "6660"),
        ("6660", "6,660.5", "6660"),
        ("666", "6 66", "666"),
        ("6.5", "65", "6.5"),
        ("6.660", "6660", "6660"),
        ("3,500,000", "3.5 million", "3.5 million"),
        ("3.5 million", "3,500,000", "3,500,000"),
        ("3.5m", "3.5 million", "3.5 million"),
        ("$3,500,000", "3.5 million dollars", "3.5 million dollars"),
        ("$3.5m", "USD 3,500,000.00", "USD 3,500,000.00"),
        ("€40", "40 €", "40 €"),
        ("40 euros", "EUR 40", "EUR 40"),
        ("40 euros", "40 dollars", "40 euros"),
        ("25 km", "25km", "25km"),
        ("25km", "25 kilometres", "25 kilometres"),
        ("25 metres", "25 m", "25 m"),
        ("25 m", "25 m", "25 m"),
        ("25 °C", "25°C", "25°C"),
        ("25 degrees Celsius", "25°C", "25°C"),
        ("25 percent", "25 %", "25 %"),
        ("25%", "25 per cent", "25 per cent"),
        ("2.50 kg", "2.5kg", "2.5kg"),
        ("4 March 1811", "1811-03-04", "1811-03-04"),
        ("1811-03-04", "March 4th, 1811", "March 4th, 1811"),
        ("4 March 1811", "04/03/1811", "04/03/1811"),
        ("25/03/1811", "25 March 1811", "25 March 1811"),
        ("04/03/1811", "4 March 1811", "4 March 1811"),
        ("March 1811", "Mar. 1811", "Mar. 1811"),
        ("March 1811", "4 March 1811", "March 1811"),
    ],
)
def test_a_number_takes_the_form_of_the_text(
    asked: str, written: str, read: str
) -> None:
    sentences = ["It rained in 1905.", f"Ann had {written} there."]
    question = numbers_as_written(f"Who had {asked} there?", having(sentences))
    assert question == f"Who had {read} there?"


@pytest.mark.parametrize(
    ("asked", "written"),
    [("4,194", "4.194"), ("1.5 km", "1,5 km"), ("4194", "4.194"), ("3.5m", "3,5 Mio")],
)
def test_numbers_of_a_german_text(asked: str, written: str) -> None:
    question = numbers_as_written(
        f"Who paid {asked}?",
        having([f"Anna hat {written} bezahlt."], "german"),
        written_with_comma=True,
    )
    assert question == f"Who paid {written}?"


@pytest.mark.parametrize(
    ("asked", "sentences"),
    [
        ("6660", ["Ann paid 6,660.", "Bob paid 6660."]),
        ("25 km", ["It is 25km long.", "It is 25 km wide."]),
        ("1811-03-04", ["On 4 March 1811.", "On 1811-03-04."]),
        # in March or in April
        ("04/03/1811", ["On 4 March 1811.", "On 3 April 1811."]),
    ],
)
def test_what_the_text_has_as_asked_stays(asked: str, sentences: list[str]) -> None:
    assert numbers_as_written(f"Who had {asked}?", having(sentences)) == (
        f"Who had {asked}?"
    )


def test_few_numbers_are_looked_up() -> None:
    question = " and ".join(["6660"] * (MOST_NUMBERS + 1))
    read = numbers_as_written(question, having(["6,660"]))
    assert read == " and ".join(["6,660"] * MOST_NUMBERS + ["6660"])


FORMS = ("{:,}", "{}", "{:_}")


@given(
    st.integers(1, 999_999_999),
    st.sampled_from(FORMS),
    st.sampled_from(FORMS),
    st.sampled_from(["", "$", "€"]),
    st.sampled_from(["", " km", "km", "%", " °C", "kg"]),
)
def test_forms_of_a_number_are_one(
    value: int, asked_form: str, written_form: str, currency: str, measure: str
) -> None:
    end = "" if currency else measure
    asked = f"{currency}{asked_form.format(value).replace('_', ' ')}{end}"
    written = f"{currency}{written_form.format(value).replace('_', ' ')}{end}"
    (quantity,) = quantities_of(asked)
    assert quantity.value == value
    assert numbers_as_written(asked, having([f"It is {written}."])) == written


@given(st.decimals(Decimal("0.001"), 999, places=3), st.sampled_from(["m", "mn"]))
def test_millions_are_one_in_both_directions(value: Decimal, name: str) -> None:
    short = f"${value.normalize():f}{name}"
    long = f"${int(value * 1_000_000):,}"
    assert numbers_as_written(short, having([f"It is {long}."])) == long
    assert numbers_as_written(long, having([f"It is {short}."])) == short


@given(st.text("0123456789,. abckm$%-/", max_size=60), st.text("0123456789,. km"))
def test_only_numbers_change(question: str, sentence: str) -> None:
    assert numbers_as_written(question, having([])) == question
    read = numbers_as_written(f"abc {question}", having([sentence]))
    assert read.startswith("abc ")
    assert numbers_as_written("abc km", having([sentence])) == "abc km"


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
