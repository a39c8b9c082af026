"""Exact match and token F1, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.answers.matching import exact_match, token_f1
from spscanner_lab.evidence.metrics import normalized


@pytest.mark.parametrize(
    ("answer", "references", "f1", "exact"),
    [
        ("the cat the cat", ["dog", "cat dog"], 1 / 2, 0),
        ("The Cat, an otter.", ["a dog", "cat otter"], 1, 1),
        (
            "cat dog dog",
            ["dog cat cat fox"],
            4 / 7,
            0,
        ),  # repeated words count as often as both have them
        ("10 otters", ["1.0 otters"], 1, 1),  # as SQuAD compares
        ("theatre", ["the"], 0, 0),
        ("", ["keeper"], 0, 0),
        ("", ["the"], 1, 1),
        ("“us”", ["us"], 0, 0),  # SQuAD knows ASCII punctuation only
    ],
)
def test_worked_out_by_hand(
    answer: str, references: list[str], f1: float, exact: float
) -> None:
    assert token_f1(answer, references) == pytest.approx(f1)
    assert exact_match(answer, references) == exact
    assert normalized(" The  Theatre's\tan-archy, a\n1.0! ") == "theatres anarchy 10"


@given(answer=st.text(max_size=30), reference=st.text(max_size=30))
def test_bounds_and_symmetry(answer: str, reference: str) -> None:
    f1 = token_f1(answer, [reference])
    assert 0 <= f1 <= 1
    assert f1 == token_f1(reference, [answer])
    assert token_f1(answer, [answer]) == exact_match(answer, [answer]) == 1
    assert exact_match(answer, [reference]) <= f1
