"""Scores of single answers, and verdicts of a judge."""

import re
from collections.abc import Sequence

import pytest

from spscanner_lab.answers.matching import references_of
from spscanner_lab.answers.scoring import Answerer, AnswerScore
from spscanner_lab.evidence.questions import Question
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import LanguageModel, language_model_of
from tests.lab.answers.test_prompts import sections_of

CHOICES = ("a cat", "a dog")


Task = tuple[Question, Sequence[str]]


def task_of(
    question: str,
    contexts: Sequence[str],
    answers: Sequence[str],
    choices: Sequence[str] = (),
) -> Task:
    return (
        Question("q", question, (), answers=tuple(answers), choices=tuple(choices)),
        contexts,
    )


TASKS = (
    task_of("Who signed?", ["SAY: the keeper"], ["keeper", "The Keeper"]),
    task_of("Who signed?", ["SAY: the keeper Smith"], ["keeper"]),
    task_of("Who signed?", ["SAY: the cook"], ["keeper"]),
    task_of("Who signed?", ["FAIL"], ["keeper"]),
    task_of("Who signed?", ["SAY: mumble"], ["keeper"]),
    task_of("Who signed?", ["SAY: trouble"], ["keeper"]),  # the judge fails
    task_of("Which one?", ["SAY: B. a dog"], ["a dog"], CHOICES),
    task_of("Which one?", ["SAY: A. a cat"], ["a dog"], CHOICES),
    task_of("Who signed?", ["SAY: nobody", "SAY: the keeper"], ["keeper"]),
    task_of("Who signed?", ["SAY: one", "FAIL"], ["keeper"]),
)


def generator(prompt: str) -> str:
    """A model that replies as the last line of the material says."""
    if "FAIL" in prompt:
        raise TimeoutError("too slow")
    return f"REASON: told.\nANSWER: {re.findall(r'(?:SAY|ANSWER): (.+)', prompt)[-1]}"


def judge(prompt: str) -> str:
    candidate = prompt.rpartition("[BEGIN CANDIDATE ANSWER")[2].splitlines()[1]
    if candidate == "mumble":
        return "I cannot tell."
    if candidate == "trouble":
        raise ConnectionError("gone")
    reference = prompt.rpartition("[BEGIN REFERENCE ANSWER")[2].splitlines()[1]
    return f"DECISION: {'YES' if reference.lower() in candidate.lower() else 'NO'}"


GENERATOR = language_model_of(generator)


JUDGE = language_model_of(judge)


def scores(
    *tasks: Task, judge: LanguageModel | None = None, model: LanguageModel = GENERATOR
) -> list[AnswerScore]:
    asker = Asker(pause=0, retries=0)
    answerer = Answerer(asker, model, judge)
    return [answerer.score(*task, "phrase") for task in tasks]


def test_scores_of_every_question() -> None:
    got = [
        (score.answer, score.token_f1, score.exact_match, score.correct)
        for score in scores(*TASKS, judge=JUDGE)
    ]
    assert got == [
        ("the keeper", 1, 1, True),
        ("the keeper Smith", pytest.approx(2 / 3), 0, True),
        ("the cook", 0, 0, False),
        (None, None, None, None),
        ("mumble", 0, 0, None),
        ("trouble", 0, 0, None),
        ("B. a dog", None, 1, True),
        ("A. a cat", None, 0, False),
        ("the keeper", 1, 1, True),
        (None, None, None, None),
    ]


def test_failures_and_verdicts_are_told_apart() -> None:
    found = scores(*TASKS, judge=JUDGE)
    assert (found[3].error, found[3].judged) == ("TimeoutError: too slow", ())
    assert found[-1].error == "window 2 of 2: TimeoutError: too slow"
    assert [reply.error for reply in found[5].judged] == ["ConnectionError: gone"]
    alone = scores(*TASKS)
    assert [score.token_f1 for score in alone] == [score.token_f1 for score in found]
    assert {score.judged for score in alone} == {()}
    blunt = language_model_of(lambda prompt: "The keeper.", name="blunt")
    (score,) = scores(TASKS[0], model=blunt)
    assert (score.marked, score.exact_match) == (False, 1)


def asked_of(*tasks: Task, reply: str = "ANSWER: fine") -> list[dict[str, str]]:
    """The sections of all prompts."""
    seen = []

    def model(prompt: str) -> str:
        seen.append(sections_of(prompt))
        return reply

    scores(*tasks, model=language_model_of(model))
    return seen


def test_windows_are_answered_and_joined() -> None:
    tasks = [
        task_of("Who?", ["ONE here", "none here"], ["x"], ["x", "y"]),
        task_of("Why?", ["ALONE"], ["x"]),
    ]
    *windows, joined, alone = asked_of(
        *tasks, reply="<think>hm</think>REASON: seen.\nANSWER: ONE"
    )
    options = {"QUESTION": "Who?", "OPTIONS": "A. x\nB. y"}
    assert windows == [options | {"PART": "ONE here"}, options | {"PART": "none here"}]
    assert alone == {"QUESTION": "Why?", "TEXT": "ALONE"}
    parts = {f"PART {number} OF 2": "REASON: seen.\nANSWER: ONE" for number in (1, 2)}
    assert joined == options | parts


@pytest.mark.parametrize(
    ("replies", "correct"),
    [
        (["DECISION: NO", "DECISION: YES"], True),  # one matching reference is enough
        (["DECISION: NO", "hm"], None),
        (["DECISION: YES", "hm"], True),
        (["hm", "hm"], None),
        (["DECISION: NO", "DECISION: NO"], False),
        ([None, "hm"], None),
    ],
)
def test_verdicts(replies: list[str | None], correct: bool | None) -> None:
    by_reference = dict(zip(("one", "two"), replies, strict=True))

    def judge(prompt: str) -> str:
        if (reply := by_reference[sections_of(prompt)["REFERENCE ANSWER"]]) is None:
            raise TimeoutError("too slow")
        return reply

    task = task_of("?", ["SAY: x"], [" one", "", "two", "one "])
    (score,) = scores(task, judge=language_model_of(judge))
    assert (score.correct, [reply.text for reply in score.judged]) == (correct, replies)
    assert references_of(["b", " ", "a", "b "]) == ("b", "a")


def test_a_choice_without_known_options_is_judged_as_one() -> None:
    """As the released records are: no token F1, and the judge's rules for options."""
    prompts = []

    def judge(prompt: str) -> str:
        prompts.append(prompt)
        return "DECISION: YES"

    question = Question("q", "Which?", (), answers=("B",), multiple_choice=True)
    (score,) = scores((question, ["SAY: B. a dog"]), judge=language_model_of(judge))
    assert (score.token_f1, score.exact_match, score.correct) == (None, None, True)
    assert "multiple-choice" in prompts[0]
