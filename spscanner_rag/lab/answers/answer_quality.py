"""Lets a language model answer questions from retrieved text, and scores the answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from spscanner_rag.lab.answers.answer_scores import choice_in, exact_match, token_f1
from spscanner_rag.lab.answers.answering import Answer, AnswerRequest, answer_questions
from spscanner_rag.lab.answers.judging import Judgement, Verdict, judge_answers, references_of
from spscanner_rag.lab.answers.prompts import AnswerLength
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import language_model_of


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A question with its reference answers and the texts to answer it from.

    Attributes
    ----------
    qid : str
        Id of the question in the result.
    question : str
        The question.
    contexts : tuple of str
        ``(retrieved_context(...),)``, ``(document,)`` or ``document_windows(document)``.
    references : tuple of str
        Right answers. A question whose references are all blank is left out and counted.
    choices : tuple of str
        The options of a multiple-choice question, which include the references; empty for other questions.
    """

    qid: str
    question: str
    contexts: tuple[str, ...]
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of one question.

    Attributes
    ----------
    qid : str
        Id of the question.
    answer : str or None
        The answer; None if the model failed. Then all scores are None.
    error : str or None
        Why the model failed.
    marked : bool
        False if the reply did not mark its answer as asked, so that all of it is the answer.
    token_f1 : float or None
        0 to 1; None for a multiple-choice question.
    exact_match : float or None
        0 or 1; for a multiple-choice question, whether the right option was picked.
    correct : bool or None
        The judge's decision; None without a judge, or if its reply is missing or unreadable.
    verdict : Verdict or None
        What the judge wrote; None if it was not asked.
    """

    qid: str
    answer: str | None
    error: str | None
    marked: bool
    token_f1: float | None
    exact_match: float | None
    correct: bool | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """The scores of many questions; failures are counted, and no mean includes them.

    Attributes
    ----------
    scores : tuple of AnswerScore
        In the order of the tasks.
    without_reference : int
        Questions that were left out because they have no reference answer.
    """

    scores: tuple[AnswerScore, ...]
    without_reference: int = 0

    @property
    def accuracy(self) -> float | None:
        """Share of the judged answers that are correct, 0 to 1; None if none was judged."""
        return _mean(score.correct for score in self.scores)

    @property
    def token_f1(self) -> float | None:
        """Mean token F1 of the answers in words, 0 to 1; None if there are none."""
        return _mean(score.token_f1 for score in self.scores)

    @property
    def exact_match(self) -> float | None:
        """Share of the answers that match exactly or pick the right option, 0 to 1; None without answers."""
        return _mean(score.exact_match for score in self.scores)

    @property
    def counts(self) -> dict[str, int]:
        """How many questions lie behind the means.

        ``questions`` were asked; ``failed`` of them got no answer; ``unmarked`` answers are whole replies.
        ``judged`` answers have a decision. Of the others, ``unparsable`` counts those with an unreadable reply of
        the judge and ``judge_failed`` those with a missing one (an answer can be in both).
        ``without_reference`` questions were not asked.
        """
        undecided = [each.verdict for each in self.scores if each.verdict and each.correct is None]
        return {
            "questions": len(self.scores),
            "failed": sum(score.answer is None for score in self.scores),
            "unmarked": sum(not score.marked for score in self.scores),
            "judged": sum(score.correct is not None for score in self.scores),
            "unparsable": sum(verdict.unparsable > 0 for verdict in undecided),
            "judge_failed": sum(bool(verdict.errors) for verdict in undecided),
            "without_reference": self.without_reference,
        }


def answer_quality(
    generator: object,
    tasks: Iterable[AnswerTask],
    *,
    judge: object | None = None,
    asker: Asker | None = None,
    length: AnswerLength = "sentence",
) -> AnswerQuality:
    """Let a language model answer questions, and score the answers.

    Parameters
    ----------
    generator, judge
        A LlamaIndex LLM, a LangChain chat model or a function; see `language_model_of`. Without a judge there are
        only token F1 and exact match.
    tasks : iterable of AnswerTask
        Consumed as needed, so that a generator need not hold all documents in memory.
    asker : Asker, optional
        How the models are asked and where replies are kept. With the same file of replies, an interrupted run
        resumes, and a finished one gives the same result without asking.
    length : {"phrase", "sentence", "paragraph"}, default "sentence"
        As for `answer_questions`.

    Raises
    ------
    TypeError, ValueError
        For a model that cannot be asked or has no name, and for a task without a context, with more than 26
        choices, or with a reference that is not among its choices.
    """
    model = language_model_of(generator)
    judging_model = None if judge is None else language_model_of(judge)
    asker = asker or Asker()
    kept: list[AnswerTask] = []  # without their contexts, which may be large
    without_reference = 0

    def requests() -> Iterator[AnswerRequest]:
        nonlocal without_reference
        for task in tasks:
            references = references_of(task.references)
            if not references:
                without_reference += 1
                continue
            if task.choices and not set(references) <= {choice.strip() for choice in task.choices}:
                raise ValueError(
                    f"question {task.qid!r}: got the references {references!r:.80}; expected each to be one of "
                    "the choices, in words"
                )
            kept.append(replace(task, contexts=(), references=references))
            yield AnswerRequest(task.question, task.contexts, task.choices)

    answers = answer_questions(model, requests(), asker, length)
    answered = [i for i, answer in enumerate(answers) if answer.text is not None]
    verdicts: dict[int, Verdict] = {}
    if judging_model is not None:
        judgements = (
            Judgement(kept[i].question, answers[i].text or "", kept[i].references, kept[i].choices)
            for i in answered
        )
        verdicts = dict(zip(answered, judge_answers(judging_model, judgements, asker), strict=True))
    scores = (_score(kept[i], answer, verdicts.get(i)) for i, answer in enumerate(answers))
    return AnswerQuality(tuple(scores), without_reference)


def _score(task: AnswerTask, answer: Answer, verdict: Verdict | None) -> AnswerScore:
    f1 = match = None
    if answer.text is not None and task.choices:
        picked = choice_in(answer.text, task.choices)
        match = float(picked is not None and task.choices[picked].strip() in task.references)
    elif answer.text is not None:
        f1, match = (score(answer.text, task.references) for score in (token_f1, exact_match))
    correct = None if verdict is None else verdict.correct
    return AnswerScore(task.qid, answer.text, answer.error, answer.marked, f1, match, correct, verdict)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
