"""What a reply says: its answer, a judge's decision, the option that it picks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.answers.matching import token_f1
from spscanner_lab.answers.prompts import (
    answer_prompt,
    judge_prompt,
)
from spscanner_lab.answers.replies import answer_in, choice_in, decision_in
from spscanner_lab.llm.replies import without_thoughts


@pytest.mark.parametrize(
    ("reply", "answer", "marked"),
    [
        ("REASON: he did.\nANSWER: the keeper", "the keeper", True),
        ("REASON: he did.\n**ANSWER:** the keeper.", "the keeper.", True),
        ("**ANSWER**: **the keeper**", "the keeper", True),
        ("ANSWER：the keeper", "the keeper", True),
        ("ANSWER:\n\n  the keeper \nI hope this helps!", "the keeper", True),
        ("ANSWER: one\nNo, wait.\nANSWER: two", "two", True),
        ("ANSWER:", "", True),
        ("ANSWER: 3 * 4", "3 * 4", True),
        ("  The keeper.\n", "The keeper.", False),
        ("The answer: the keeper", "The answer: the keeper", False),
        ("<think>ANSWER: one</think>ANSWER: two", "two", True),
        ("<think>\nANSWER: one", "", False),
        (" <THINK>a</THINK> c", "c", False),
        ("REASON: the page says <think>.\nANSWER: the keeper", "the keeper", True),
        ("</think> c", "</think> c", False),
    ],
)
def test_answer_in_a_reply(reply: str, answer: str, marked: bool) -> None:
    assert answer_in(reply) == (answer, marked)


@given(st.text())
def test_any_reply_is_read(reply: str) -> None:
    answer, marked = answer_in(reply)
    assert answer in without_thoughts(reply)
    assert not marked or "\n" not in answer


YES = [
    "REASON: They agree.\nDECISION: YES",
    "REASON: They agree. DECISION: YES",
    "DECISION: YES\nREASON: They agree.",
    "**DECISION: YES**",
    "decision:: yes",
    "DECISION：YES",
    "DECISION - yes",
    "The decision is YES.",
    "DECISION: YES, because the numbers agree",
    "DECISION: YES (it is the same option)",
    "DECISION:\nYES",
    '{"reason": "They agree.", "decision": "YES"}',
    "YES",
    "**Yes**",
    "<think>DECISION: NO</think>DECISION: YES",
    "It quotes 'DECISION: NO' but it is right.\nDECISION: YES",
]


NO = [
    "DECISION: NO",
    "no",
    'The candidate says "DECISION: YES", which is no argument.\nDECISION: NO',
    "DECISION: YES\nNo, that was hasty.\nDECISION: NO",
]


UNCLEAR = [
    "",
    "It was a hard decision. No reference was given.",
    "DECISION: YES/NO",
    "DECISION: YES or NO",
    "DECISION: YES or DECISION: NO",
    "DECISION: YESTERDAY",
    "DECISION: no doubt that it is right",
    "DECISION:",
    "Yes, the answer is right.",
    "DECISION: YES\nOn second thought, DECISION: NO, or is it?",
    "<think>DECISION: YES",
    "INDECISION: YES",
    "undecided",
    "\ud800 \x00",
]


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        *((reply, True) for reply in YES),
        *((reply, False) for reply in NO),
        *((reply, None) for reply in UNCLEAR),
    ],
)
def test_a_decision_is_never_guessed(reply: str, decision: bool | None) -> None:
    assert decision_in(reply) is decision


@pytest.mark.parametrize("choices", [(), ("a cat", "a dog")])
def test_a_model_that_repeats_its_prompt_has_said_nothing(
    choices: tuple[str, ...],
) -> None:
    assert answer_in(answer_prompt("Who?", "Text.", choices))[1] is False
    assert decision_in(judge_prompt("Who?", "a cat", "a dog", choices)) is None


@given(st.text(alphabet="decision:YESNOyesno \n*.", max_size=60))
def test_any_reply_of_a_judge_is_read(reply: str) -> None:
    assert decision_in(reply + "\nDECISION: YES") in (True, None)
    assert decision_in(reply + "\n\nDECISION: NO") in (False, None)


def test_long_replies_are_read_fast() -> None:
    assert decision_in("decision " * 50_000) is None
    assert decision_in("decision:" + " " * 200_000 + "x") is None
    assert decision_in("*" * 200_000) is None


CHOICES = ["a red fox", "the otter", "both of them", "plan B", "B"]


PICKED = {
    0: ["A", "A. the red fox", "A red fox!"],
    1: [
        "B. the otter",
        "B) The otter, which swims",
        "B: the otter.",
        "The answer is B.",
        "the otter",
    ],
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
        "B",  # the words of one option with the letter of another
    ],
}


@pytest.mark.parametrize(
    ("answer", "picked"),
    [(each, n) for n, answers in PICKED.items() for each in answers],
)
def test_picked_option(answer: str, picked: int | None) -> None:
    assert choice_in(answer, CHOICES) == picked


@given(st.text(max_size=40), st.lists(st.text(max_size=8), max_size=5))
def test_any_answer_is_read(answer: str, choices: list[str]) -> None:
    picked = choice_in(answer, choices)
    assert picked is None or 0 <= picked < len(choices)


@pytest.mark.parametrize(
    "answer",
    ["A" + "," * 300_000, "answer is " * 30_000, "B. " * 100_000, " " * 300_000 + "B"],
)
def test_long_answers_are_read_fast(answer: str) -> None:
    choice_in(answer, CHOICES)  # the suite's time limit is the assertion
    assert 0 <= token_f1(answer, ["the otter"]) <= 1
