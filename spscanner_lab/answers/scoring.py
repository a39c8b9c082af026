"""Lets a language model answer one question, and scores the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_lab.answers.matching import exact_match, references_of, token_f1
from spscanner_lab.answers.prompts import (
    AnswerLength,
    aggregation_prompt,
    answer_prompt,
    judge_prompt,
    window_prompt,
)
from spscanner_lab.answers.replies import answer_in, choice_in, decision_in
from spscanner_lab.evidence.questions import Question
from spscanner_lab.llm.asking import Asker, Reply
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.llm.replies import without_thoughts


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of one question.

    All are None if the model failed, even if on only one of several windows.

    Attributes
    ----------
    answer : str or None
        None if the model failed.
    error : str or None
        Why it failed.
    marked : bool
        False if the reply did not mark its answer as the prompt says; then all of the
        reply is the answer.
    token_f1 : float or None
        0 to 1; None for a multiple-choice question.
    exact_match : float or None
        0 or 1; for a multiple-choice question, 1 if the right option was picked, and
        None if the options are not known.
    correct : bool or None
        True if the judge says YES for any reference, False if NO for all, else None.
    judged : tuple of Reply
        The judge's replies, one for each reference.
    """

    answer: str | None
    error: str | None
    marked: bool
    token_f1: float | None
    exact_match: float | None
    correct: bool | None
    judged: tuple[Reply, ...] = ()


@dataclass(frozen=True, slots=True)
class Answerer:
    """A language model that answers questions, and another that judges the answers.

    Attributes
    ----------
    asker : Asker
        Asks both models.
    model, judge : LanguageModel
        Without a judge, answers are scored by their words alone.
    """

    asker: Asker
    model: LanguageModel
    judge: LanguageModel | None = None

    def score(
        self, question: Question, contexts: Sequence[str], length: AnswerLength
    ) -> AnswerScore:
        """Answer a question, and score the answer.

        ``contexts`` has the text to answer from, or windows whose answers are combined.
        One match with a right answer is enough. The paper's script sets the judge's
        temperature to 0 and asks for a sentence or a paragraph, depending on the
        benchmark; "phrase" suits token F1 and exact match against short answers.
        """
        reply = self._reply(question, contexts, length)
        if reply.text is None:
            return AnswerScore(None, reply.error, True, None, None, None)
        answer, marked = answer_in(reply.text)
        references = references_of(question.answers)
        f1 = None
        match = None
        if question.choices:
            match = _is_right_choice(answer, question.choices, references)
        elif not question.is_choice:
            f1 = token_f1(answer, references)
            match = exact_match(answer, references)
        verdicts = self._verdicts(question, references, answer)
        correct = None if self.judge is None else _correct(verdicts)
        return AnswerScore(answer, None, marked, f1, match, correct, verdicts)

    def _verdicts(
        self, question: Question, references: Sequence[str], answer: str
    ) -> tuple[Reply, ...]:
        """Return the judge's replies, one for each reference, as in the paper."""
        if self.judge is None:
            return ()
        verdicts = []
        for reference in references:
            prompt = judge_prompt(
                question.text,
                reference,
                answer,
                question.choices,
                multiple_choice=question.multiple_choice,
            )
            verdicts.append(self.asker.reply(self.judge, prompt))
        return tuple(verdicts)

    def _reply(
        self, question: Question, contexts: Sequence[str], length: AnswerLength
    ) -> Reply:
        """Return the reply to a question.

        Another prompt combines the replies to several windows, if none failed.
        """
        choices = question.choices
        if len(contexts) == 1:
            prompt = answer_prompt(question.text, contexts[0], choices, length)
            return self.asker.reply(self.model, prompt)
        replies = []
        for number, window in enumerate(contexts, 1):
            place = f"{number} of {len(contexts)}"
            prompt = window_prompt(question.text, window, place, choices, length)
            reply = self.asker.reply(self.model, prompt)
            if reply.text is None:
                return Reply(None, f"window {place}: {reply.error}")
            replies.append(without_thoughts(reply.text))
        prompt = aggregation_prompt(question.text, replies, choices, length)
        return self.asker.reply(self.model, prompt)


def _is_right_choice(
    answer: str, choices: Sequence[str], references: Sequence[str]
) -> float:
    picked = choice_in(answer, choices)
    return float(picked is not None and choices[picked].strip() in references)


def _correct(verdicts: Sequence[Reply]) -> bool | None:
    """Return True if any decision is YES, False if all are NO, else None."""
    decisions: list[bool | None] = []
    for verdict in verdicts:
        if verdict.text is None:
            decisions.append(None)
        else:
            decisions.append(decision_in(verdict.text))
    if True in decisions:
        return True
    return None if None in decisions else False
