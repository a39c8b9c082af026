"""Answers from each text, in the order of the questions, and what they took."""

import re

import pytest

from spscanner_lab.answers.answering import (
    answer_from,
    questions_with_answers,
)
from spscanner_lab.answers.contexts import (
    WHOLE_DOCUMENT,
    document_windows,
)
from spscanner_lab.answers.scoring import Answerer
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import LanguageModel

OTTERS = " ".join(f"Otter {number} swims." for number in range(400))


def document(doc_id: str, *questions: Question) -> Document:
    return Document(
        doc_id, "walks", f"title of {doc_id}", f"{doc_id}. {OTTERS}", questions
    )


def question(qid: str, *answers: str) -> Question:
    return Question(qid, f"Which otter, {qid}?", ((0, 3),), answers=answers)


FIRST = document("one", question("a", "399"), question("b", " "), question("c", "399"))
SECOND = document("two", question("d", "400"))
ASKED = {
    "walks": (
        [(FIRST, q) for q in FIRST.questions[:2]]
        + [(SECOND, SECOND.questions[0]), (FIRST, FIRST.questions[2])]
    )
}


def in_windows(document: Document, question: Question) -> tuple[str, ...]:
    return document_windows(document.text, 500)


def last_otter(prompt: str) -> str:
    return (
        "ANSWER:"
        f" {re.findall(r'(?:Otter |ANSWER: )(.+?)(?: swims|$)', prompt, re.M)[-1]}"
    )


def test_questions_go_document_by_document_without_those_that_have_no_answer() -> None:
    found = [
        (document.doc_id, question.qid)
        for document, question in questions_with_answers(ASKED)
    ]
    assert found == [("one", "a"), ("one", "c"), ("two", "d")]
    with pytest.raises(ValueError, match="got questions without right answers"):
        questions_with_answers({"walks": [(FIRST, FIRST.questions[1])]})


def test_answers_belong_to_their_questions_and_are_counted() -> None:
    model, judge = (
        LanguageModel("m", last_otter),
        LanguageModel("j", lambda prompt: "DECISION: NO"),
    )
    asker, done = Asker(retries=0), list[int]()
    questions = questions_with_answers(ASKED)
    for judged in (judge, None):
        answerer = Answerer(asker, model, judged)
        found = answer_from(
            WHOLE_DOCUMENT, in_windows, questions, answerer, "phrase", done.append
        )
        assert found.setting == WHOLE_DOCUMENT
        got = [
            (document.doc_id, question.qid, score.answer)
            for document, question, score in found.answers
        ]
        assert got == [("one", "a", "399"), ("one", "c", "399"), ("two", "d", "399")]
        assert found.answering.prompts > 3 * 4
        assert found.judging.prompts == (3 if judged else 0)
    assert done == [1, 2, 3] * 2
