"""Token F1, exact match and picked options, against values worked out in another way."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.answers.scores import choice_in, exact_match, normalized, token_f1


def plain_words(answer: str) -> list[str]:
    """SQuAD's normalization, character by character."""
    kept = "".join(character for character in answer.lower() if character not in string.punctuation)
    words, word = [], ""
    for character in kept + " ":
        if character.isspace():
            words.append(word)
            word = ""
        else:
            word += character
    return [word for word in words if word not in ("a", "an", "the", "")]


def plain_f1(answer: str, reference: str) -> float:
    """F1 from precision and recall, by crossing out words that were found."""
    ours, theirs = plain_words(answer), plain_words(reference)
    if not ours or not theirs:
        return 1.0 if ours == theirs else 0.0
    left, found = list(theirs), 0
    for word in ours:
        if word in left:
            left.remove(word)
            found += 1
    if not found:
        return 0.0
    precision, recall = found / len(ours), found / len(theirs)
    return 2 * precision * recall / (precision + recall)


TEXTS = st.lists(
    st.sampled_from(
        ["the", "a", "An", "cat", "Cat,", "cat's", "dog", "10", "1.0", "--", "THE.", "theatre", "é"]
    ),
    max_size=8,
).map(" ".join)


@given(answer=TEXTS, references=st.lists(TEXTS, min_size=1, max_size=3))
def test_against_another_implementation(answer: str, references: list[str]) -> None:
    assert token_f1(answer, references) == pytest.approx(max(plain_f1(answer, each) for each in references))
    expected = any(plain_words(answer) == plain_words(each) for each in references)
    assert exact_match(answer, references) == float(expected)


@given(answer=st.text(max_size=30), reference=st.text(max_size=30))
def test_bounds_and_symmetry(answer: str, reference: str) -> None:
    f1 = token_f1(answer, [reference])
    assert 0 <= f1 <= 1
    assert f1 == token_f1(reference, [answer])
    assert token_f1(answer, [answer]) == exact_match(answer, [answer]) == 1
    assert exact_match(answer, [reference]) <= f1


def test_worked_out_by_hand() -> None:
    assert token_f1("the cat the cat", ["dog", "cat dog"]) == pytest.approx(1 / 2)
    assert (token_f1("", ["keeper"]), token_f1("", ["the"])) == (0, 1)
    assert exact_match("“us”", ["us"]) == 0  # SQuAD knows ASCII punctuation only
    assert normalized(" The  Theatre's\tan-archy, a\n1.0! ") == "theatres anarchy 10"


@pytest.mark.parametrize("score", [token_f1, exact_match])
def test_no_reference(score: object) -> None:
    with pytest.raises(ValueError, match="got no reference answer"):
        score("x", [])  # type: ignore[operator]


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
