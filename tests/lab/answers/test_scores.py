"""Token F1, exact match and picked options, against values worked out in another way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.answers.scores import choice_in, exact_match, normalized, token_f1


@pytest.mark.parametrize(
    ("answer", "references", "f1", "exact"),
    [
        ("the cat the cat", ["dog", "cat dog"], 1 / 2, 0),
        ("The Cat, an otter.", ["a dog", "cat otter"], 1, 1),
        ("cat dog dog", ["dog cat cat fox"], 4 / 7, 0),  # a repeated word counts as often as both have it
        ("10 otters", ["1.0 otters"], 1, 1),  # so SQuAD compares
        ("theatre", ["the"], 0, 0),
        ("", ["keeper"], 0, 0),
        ("", ["the"], 1, 1),
        ("“us”", ["us"], 0, 0),  # SQuAD knows ASCII punctuation only
    ],
)
def test_worked_out_by_hand(answer: str, references: list[str], f1: float, exact: float) -> None:
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


CHOICES = ["a red fox", "the otter", "both of them", "plan B", "B"]


PICKED = {
    0: ["A", "A. the red fox", "A red fox!"],
    1: ["B. the otter", "B) The otter, which swims", "B: the otter.", "The answer is B.", "the otter"],
    2: ["C.", "**C**", "Option C", "option (C): both of them"],
    3: ["d", "(D)", "The answer is: D", "plan B", "D. plan B"],
    4: ["E. B"],
    None: [
        *(
            "",
            "F",
            "7",
            "A dog",
            "A and B",
            "A, B",
            "A. a red fox or B. the otter",
            "A. or C.",
            "B. a red fox",
        ),
        *("neither", "vitamin C", "not in this part", "Both the otter and the fox"),
        "B",  # the words of one option, the letter of another
    ],
}


@pytest.mark.parametrize(
    ("answer", "picked"), [(each, n) for n, answers in PICKED.items() for each in answers]
)
def test_picked_option(answer: str, picked: int | None) -> None:
    assert choice_in(answer, CHOICES) == picked


@given(st.text(max_size=40), st.lists(st.text(max_size=8), max_size=5))
def test_any_answer_is_read(answer: str, choices: list[str]) -> None:
    picked = choice_in(answer, choices)
    assert picked is None or 0 <= picked < len(choices)


@pytest.mark.parametrize(
    "answer", ["A" + "," * 300_000, "answer is " * 30_000, "B. " * 100_000, " " * 300_000 + "B"]
)
def test_long_answers_are_read_fast(answer: str) -> None:
    choice_in(answer, CHOICES)  # the suite's time limit is the assertion
    assert 0 <= token_f1(answer, ["the otter"]) <= 1
