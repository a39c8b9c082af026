"""Answers and scores together: what is in the means, what is only counted, and a second run from the file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from llama_index.core.llms import MockLLM

from spscanner_rag.lab.answers.answer_quality import AnswerQuality, AnswerTask, answer_quality
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import language_model_of
from spscanner_rag.lab.llm.replies import ReplyFile

CHOICES = ("a cat", "a dog")
TASKS = (
    AnswerTask("right", "Who signed?", ("SAY: the keeper",), ("keeper", "The Keeper")),
    AnswerTask("half", "Who signed?", ("SAY: the keeper Smith",), ("keeper",)),
    AnswerTask("wrong", "Who signed?", ("SAY: the cook",), ("keeper",)),
    AnswerTask("failed", "Who signed?", ("FAIL",), ("keeper",)),
    AnswerTask("unread", "Who signed?", ("SAY: mumble",), ("keeper",)),
    AnswerTask("judge fails", "Who signed?", ("SAY: trouble",), ("keeper",)),
    AnswerTask("no reference", "Who signed?", ("SAY: the cook",), (" ",)),
    AnswerTask("choice", "Which one?", ("SAY: B. a dog",), ("a dog",), CHOICES),
    AnswerTask("wrong choice", "Which one?", ("SAY: A. a cat",), ("a dog",), CHOICES),
    AnswerTask("windows", "Who signed?", ("SAY: nobody", "SAY: the keeper"), ("keeper",)),
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


def quality(asker: Asker | None = None, with_judge: bool = True) -> AnswerQuality:
    asker = asker or Asker(pause=0, retries=0)
    return answer_quality(
        generator, iter(TASKS), judge=judge if with_judge else None, asker=asker, length="phrase"
    )


def test_scores_of_every_question() -> None:
    got = [
        (score.qid, score.answer, score.token_f1, score.exact_match, score.correct)
        for score in quality().scores
    ]
    assert got == [
        ("right", "the keeper", 1, 1, True),
        ("half", "the keeper Smith", pytest.approx(2 / 3), 0, True),
        ("wrong", "the cook", 0, 0, False),
        ("failed", None, None, None, None),
        ("unread", "mumble", 0, 0, None),
        ("judge fails", "trouble", 0, 0, None),
        ("choice", "B. a dog", None, 1, True),
        ("wrong choice", "A. a cat", None, 0, False),
        ("windows", "the keeper", 1, 1, True),
    ]


def test_means_leave_out_what_failed() -> None:
    result = quality()
    assert result.accuracy == pytest.approx(4 / 6)
    assert result.token_f1 == pytest.approx((1 + 2 / 3 + 0 + 0 + 0 + 1) / 6)
    assert result.exact_match == pytest.approx(3 / 8)
    assert result.counts == {
        "questions": 9,
        "failed": 1,
        "unmarked": 0,
        "judged": 6,
        "unparsable": 1,
        "judge_failed": 1,
        "without_reference": 1,
    }
    failed = result.scores[3]
    assert failed.error == "TimeoutError: too slow"
    assert failed.verdict is None
    trouble = result.scores[5].verdict
    assert trouble is not None
    assert trouble.errors == ("ConnectionError: gone",)


def test_without_a_judge() -> None:
    result = quality(with_judge=False)
    assert result.accuracy is None
    assert result.token_f1 == quality().token_f1
    assert (result.counts["judged"], result.counts["unparsable"], result.counts["judge_failed"]) == (0, 0, 0)


def test_no_questions() -> None:
    result = answer_quality(generator, [], judge=judge)
    assert (result.scores, result.accuracy, result.token_f1, result.exact_match) == ((), None, None, None)
    assert set(result.counts.values()) == {0}


def test_everything_failed() -> None:
    result = answer_quality(generator, [TASKS[3]], judge=judge, asker=Asker(retries=0))
    assert (result.accuracy, result.token_f1, result.exact_match) == (None, None, None)
    assert result.counts["failed"] == 1


def test_unmarked_answers_are_counted() -> None:
    blunt = language_model_of(lambda prompt: "The keeper.", name="blunt")
    result = answer_quality(blunt, TASKS[:1])
    assert result.counts["unmarked"] == 1
    assert result.exact_match == 1


def test_a_second_run_asks_only_for_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path) as file:
        first = quality(Asker(replies=file, pause=0, retries=0))
    before = path.read_bytes()
    with ReplyFile(path) as file:
        second = quality(Asker(replies=file, pause=0, retries=0))
    assert second == first
    added = [json.loads(line) for line in path.read_bytes()[len(before) :].splitlines()]
    assert [(record["model"], record["error"]) for record in added] == [
        ("generator", "TimeoutError: too slow"),
        ("judge", "ConnectionError: gone"),
    ]


@pytest.mark.parametrize("workers", [1, 8])
def test_same_result_with_any_number_of_workers(workers: int) -> None:
    assert quality(Asker(workers=workers, pause=0, retries=0)) == quality()


def test_tasks_are_taken_as_the_work_goes_on() -> None:
    made = 0
    behind: list[int] = []

    def tasks() -> Iterator[AnswerTask]:
        nonlocal made
        for made in range(1, 201):
            yield AnswerTask(str(made), f"Question {made}?", ("SAY: x",), ("x",))

    def model(prompt: str) -> str:
        number = re.findall(r"Question (\d+)", prompt)[0]
        behind.append(made - int(number))
        return "ANSWER: x"

    result = answer_quality(language_model_of(model), tasks(), asker=Asker(workers=1))
    assert result.exact_match == 1
    assert max(behind) <= 4


def test_models_of_both_frameworks() -> None:
    chat = language_model_of(FakeListChatModel(responses=["ANSWER: keeper"]), name="chat")
    echo = language_model_of(MockLLM(), name="echo")
    result = answer_quality(chat, TASKS[:2], judge=echo)
    assert result.exact_match == 1
    assert result.counts["unparsable"] == 2


def test_a_reference_that_is_no_choice() -> None:
    task = AnswerTask("q7", "Which one?", ("text",), ("B",), CHOICES)
    with pytest.raises(
        ValueError, match=r"question 'q7': got the references \('B',\); expected each to be one"
    ):
        answer_quality(generator, [task])


@pytest.mark.parametrize("model", [None, "gpt-4o"])
def test_no_model(model: object) -> None:
    with pytest.raises(TypeError, match="expected a LlamaIndex LLM"):
        answer_quality(model, TASKS)
