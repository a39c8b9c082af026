"""Lets a language model answer the questions of an evaluation."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from threading import Event
from typing import NamedTuple

from spscanner_lab.answers.contexts import Contexts
from spscanner_lab.answers.matching import references_of
from spscanner_lab.answers.prompts import AnswerLength
from spscanner_lab.answers.scoring import Answerer, AnswerScore
from spscanner_lab.evidence.questions import Document, Question, QuestionOnDocument
from spscanner_lab.evidence.sampling import by_document
from spscanner_lab.llm.asking import PromptCount
from spscanner_rag.baselines.settings import Setting


class AnswerSet(NamedTuple):
    """The answers from the texts that a setting finds, and what they took.

    Attributes
    ----------
    setting : Setting
        What finds the texts.
    answers : tuple
        Document, question and score, in the order of the questions.
    answering, judging : PromptCount
        Prompts and tokens of the model, and of the judge.
    """

    setting: Setting
    answers: tuple[tuple[Document, Question, AnswerScore], ...]
    answering: PromptCount
    judging: PromptCount


def questions_with_answers(
    questions: Mapping[str, Sequence[QuestionOnDocument]],
) -> list[QuestionOnDocument]:
    """Return the questions that have a reference answer, document by document.

    ``questions`` are by source. ``ValueError`` if none has an answer.
    """
    answered: list[QuestionOnDocument] = []
    for questions_of_source in questions.values():
        for document, questions_on_it in by_document(questions_of_source):
            for question in questions_on_it:
                if references_of(question.answers):
                    answered.append((document, question))
    if not answered:
        raise ValueError(
            "--answers: got questions without right answers to compare with; expected a"
            " list of right answers under 'answers' of at least one question"
        )
    return answered


def answer_from(
    setting: Setting,
    contexts: Contexts,
    questions: Sequence[QuestionOnDocument],
    answerer: Answerer,
    length: AnswerLength | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> AnswerSet:
    """Answer `questions_with_answers` from ``contexts``, and score the answers.

    Without ``length``, each answer is requested in its question's ``answer_form``, or
    else in a sentence. ``progress`` gets the number of questions done.
    """
    # a copy, which counts from zero
    asker = replace(answerer.asker, stop=Event())
    answerer = replace(answerer, asker=asker)

    def score_of(task: tuple[Question, Sequence[str]]) -> AnswerScore:
        question, texts = task
        form: AnswerLength = length or question.answer_form or "sentence"  # type: ignore[assignment]
        return answerer.score(question, texts, form)

    tasks = (
        (question, contexts(document, question)) for document, question in questions
    )
    answers: list[tuple[Document, Question, AnswerScore]] = []
    with closing(asker.in_order(tasks, score_of)) as scores:
        for (document, question), score in zip(questions, scores, strict=True):
            answers.append((document, question, score))
            progress(len(answers))
    judging = PromptCount()
    if answerer.judge is not None:
        judging = asker.count_of(answerer.judge)
    answering = asker.count_of(answerer.model)
    return AnswerSet(setting, tuple(answers), answering, judging)
