"""Labels of sentences: windows, the check, and the stronger model after it failed."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from spscanner_lab.annotation.annotating import annotator_of
from spscanner_lab.annotation.labelling import LabelledQuestion, annotated_line
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.synthesis.conversation import DroppedError

SIGNED = "Captain Smith signed the treaty."
TEXT = " ".join(
    [*(f"It rained on day {day}." for day in range(45)), SIGNED, "Then he left."]
)
DOCUMENT = Document("d1", "logs", "", TEXT, ())
QUESTION = Question("q1", "Who signed?", ((0, 1),), answers=("Captain Smith",))


class Model:
    """Names the sentences that match a pattern, and replies to checks in turn."""

    def __init__(self, pattern: str = "Smith", *checks: str) -> None:
        self.pattern = pattern
        self.checks = list(checks)
        self.windows: list[int] = []
        self.checked: list[str] = []

    def __call__(self, prompt: str) -> str:
        sentences = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)
        if "[BEGIN ANSWER" not in prompt:
            self.checked.append(prompt)
            return self.checks.pop(0)
        self.windows.append(len(sentences))
        relevant = [
            number for number, text in sentences if re.search(self.pattern, text)
        ]
        decision = "YES" if relevant else "NO"
        return f"RELEVANT: {decision}\nINDICES: {', '.join(relevant) or 'NONE'}"


GOOD = "ANSWERABLE: YES\nANSWER: captain smith"
NO = "ANSWERABLE: NO\nANSWER: none"


def labelled_by(
    labeller: Model, stronger: Model, checker: Callable[[str], str]
) -> LabelledQuestion:
    models = {"first": labeller, "stronger": stronger, "checker": checker}
    adapted = [LanguageModel(name, model) for name, model in models.items()]
    return annotator_of(*adapted).label(DOCUMENT, QUESTION)


def texts_of(labelled: LabelledQuestion) -> list[str]:
    return [TEXT[start:end] for start, end in labelled.question.evidence]


def test_the_first_model_sees_windows_of_twenty() -> None:
    first, stronger, checker = Model(), Model(), Model("", GOOD)
    labelled = labelled_by(first, stronger, checker)
    assert texts_of(labelled) == [SIGNED]
    assert (labelled.window, labelled.model) == (20, "first")
    assert first.windows == [20, 20, 7]
    assert stronger.windows == []
    (prompt,) = checker.checked
    assert SIGNED in prompt
    assert "It rained" not in prompt, "the check sees the labelled sentences alone"
    assert "Captain Smith\n" not in prompt.replace(SIGNED, ""), "nor the answer"


def test_a_failed_check_asks_the_stronger_model() -> None:
    first, stronger, checker = Model("day 3"), Model(), Model("", NO, GOOD)
    labelled = labelled_by(first, stronger, checker)
    assert texts_of(labelled) == [SIGNED]
    assert (labelled.window, labelled.model) == (200, "stronger")
    assert stronger.windows == [47]


def test_without_any_label_the_stronger_model_is_asked() -> None:
    first, checker = Model("nothing"), Model("", GOOD)
    assert labelled_by(first, Model(), checker).model == "stronger"
    assert len(checker.checked) == 1


@pytest.mark.parametrize(("verdict", "is_same"), [("YES", True), ("NO", False)])
def test_an_answer_in_other_words_is_judged(verdict: str, is_same: bool) -> None:
    other = "ANSWERABLE: YES\nANSWER: the man in command"
    checker = Model("", other, f"DECISION: {verdict}", GOOD)
    labelled = labelled_by(Model(), Model(), checker)
    assert labelled.model == ("first" if is_same else "stronger")
    assert "[BEGIN CANDIDATE ANSWER" in checker.checked[1]


@pytest.mark.parametrize(
    ("pattern", "checks", "reason"),
    [
        ("nothing", [], "no sentence is needed"),
        ("Smith", [NO, NO], "the answer was not reproduced"),
        ("Smith", ["hm"] * 3, "check_answer: the reply lacks a part"),
    ],
)
def test_why_a_question_is_dropped(
    pattern: str, checks: list[str], reason: str
) -> None:
    with pytest.raises(DroppedError, match=reason):
        labelled_by(Model(pattern), Model(pattern), Model("", *checks))


def test_a_question_without_an_answer_is_dropped() -> None:
    question = Question("q", "Who?", ((0, 9),), answers=(" ",))
    with pytest.raises(DroppedError, match="the question has no answer"):
        annotator_of("scripted").label(DOCUMENT, question)


def test_a_line_has_the_labels_alone() -> None:
    labelled = labelled_by(Model(), Model(), Model("", GOOD))
    line = annotated_line(DOCUMENT, [labelled], {"labeller": "first"})
    start = TEXT.index(SIGNED)
    assert line["questions"] == [
        {
            "qid": "q1",
            "question": "Who signed?",
            "answers": ["Captain Smith"],
            "evidence": [[start, start + len(SIGNED)]],
            "annotation": {"window": 20, "model": "first"},
        }
    ]
    assert line["annotation"] == {"labeller": "first"}


def test_a_line_keeps_category_length_and_kind_of_question() -> None:
    document = replace(DOCUMENT, category="law", tokens=9)
    question = replace(
        QUESTION,
        multiple_choice=True,
        evidence=((0, 2),),
        choices=("Smith", "Jones"),
        answer_form="phrase",
    )
    labelled = LabelledQuestion(question, 20, "first")
    line = annotated_line(document, [labelled], {})
    assert (line["category"], line["tokens"]) == ("law", 9)
    entry = line["questions"][0]
    assert entry["multiple_choice"] is True
    assert entry["choices"] == ["Smith", "Jones"]
    assert entry["answer_form"] == "phrase"
