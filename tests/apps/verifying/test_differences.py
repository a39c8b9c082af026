import pytest

from spscanner_rag.apps.verifying.differences import (
    Difference,
    is_number_form,
    kind_of,
    number_value,
)


@pytest.mark.parametrize(
    ("quoted", "source", "kind"),
    [
        ("1906", "1904", "number"),
        ("£", "$", "number"),
        ("twelve", "12", None),
        ("sixtyeight", "68", None),
        ("wellknown", "well known", None),
        ("was", "was not", "negation"),
        ("could", "couldnt", "negation"),
        ("impossible", "possible", "negation"),
        ("hopeless", "hopeful", "negation"),
        ("cat", "indicate", "word"),
        ("red", "green", "word"),
        ("very", "", "added"),
        ("", "very", "left out"),
        ("nicht", "", "negation"),
    ],
)
def test_kinds(quoted: str, source: str, kind: str | None) -> None:
    assert kind_of(quoted.split(), source.split()) == kind


@pytest.mark.parametrize(
    ("form", "value"), [("ninetynine", "99"), ("07", "07"), ("twentyten", None)]
)
def test_values_of_numbers(form: str, value: str | None) -> None:
    assert number_value(form) == value
    assert is_number_form(form) == (value is not None)


def test_a_difference_says_which_side_has_nothing() -> None:
    assert str(Difference("added", "very", "")) == 'added: "very" is not in the source'
    missing = str(Difference("negation", "", "not"))
    assert missing == 'negation: "not" of the source is missing'
