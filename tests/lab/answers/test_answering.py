"""Answers and scores: the context, windows, means, verdicts, and a second run from the file of replies."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.baselines import BM25
from spscanner_rag.lab.answers.answering import (
    WINDOW_TOKENS,
    AnswerScore,
    answer_score,
    document_windows,
    references_of,
    retrieved_context,
)
from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import LanguageModel, language_model_of
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.fakes import words
from tests.lab.answers.conftest import sections_of

CHOICES = ("a cat", "a dog")


Task = tuple[Question, Sequence[str]]


def task_of(
    question: str, contexts: Sequence[str], answers: Sequence[str], choices: Sequence[str] = ()
) -> Task:
    return Question("q", question, (), answers=tuple(answers), choices=tuple(choices)), contexts


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
    """Says what the last line of the material tells it to say."""
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


GENERATOR, JUDGE = (language_model_of(one) for one in (generator, judge))


def scores(
    *tasks: Task, judge: LanguageModel | None = None, model: LanguageModel = GENERATOR
) -> list[AnswerScore]:
    asker = Asker(pause=0, retries=0)
    return [answer_score(*task, "phrase", model, judge, asker) for task in tasks]


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


def test_a_document_without_units_gives_no_context() -> None:
    assert retrieved_context(BM25(), "Which?", " \n ", [], 50) == ""


# Windows

TEXT = "The otter swims.  A heron flies. Rain fell all day.\nOtters and herons rest."


def numbered(sentences: int) -> str:
    """Sentences of four words each, every one different."""
    return " ".join(f"Sentence number {number} stands." for number in range(sentences))


def test_default_is_the_papers() -> None:
    assert WINDOW_TOKENS == 120_000

    def starts(sentences: int) -> list[int]:
        """Sentence that each window begins with, in a document whose sentences have 1,000 tokens each."""
        windows = document_windows(numbered(sentences), count_tokens=lambda text: 1000)
        return [int(re.findall(r"\d+", window)[0]) for window in windows]

    assert starts(120) == [0]
    assert starts(160) == [0, 40]  # the last one is moved back to be full
    assert starts(300) == [0, 59, 118, 177, 180]


def test_a_document_that_fits_is_itself() -> None:
    for text in (TEXT, "", " \n", "  one  ", "\ud800"):
        assert document_windows(text, 20, words) == (text,)


@given(
    sentences=st.lists(
        st.sampled_from(["One.", "Two words.", "Here are three.", "A B C D E F G."]), max_size=30
    ),
    window=st.integers(1, 40),
)
def test_every_sentence_is_in_a_window(sentences: list[str], window: int) -> None:
    text = "\n\n".join(f"{number} {sentence}" for number, sentence in enumerate(sentences))
    windows = document_windows(text, window, words)
    spans, position = [], 0
    for each in windows:
        position = text.index(each, position)
        spans.append((position, position + len(each)))
        assert words(each) <= max(window + 1, 8)  # 8 words: the longest sentence
    for unit in SentenceSegmenter().segment(text):
        assert any(start <= unit.start and unit.end <= end for start, end in spans)


# What models are asked, and verdicts


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
    *windows, joined, alone = asked_of(*tasks, reply="<think>hm</think>REASON: seen.\nANSWER: ONE")
    options = {"QUESTION": "Who?", "OPTIONS": "A. x\nB. y"}
    assert windows == [options | {"PART": "ONE here"}, options | {"PART": "none here"}]
    assert alone == {"QUESTION": "Why?", "TEXT": "ALONE"}
    parts = {f"PART {number} OF 2": "REASON: seen.\nANSWER: ONE" for number in (1, 2)}
    assert joined == options | parts


@pytest.mark.parametrize(
    ("replies", "correct"),
    [
        (["DECISION: NO", "DECISION: YES"], True),  # one right reference is enough
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
