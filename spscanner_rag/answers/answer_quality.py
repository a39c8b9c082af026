"""How good the answers are that a language model gives from what a retriever found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from spscanner_rag.answers.answer_scores import choice_in, exact_match, token_f1
from spscanner_rag.answers.answering import Answer, AnswerRequest, answer_questions
from spscanner_rag.answers.asking import Asker
from spscanner_rag.answers.judging import Judgement, Verdict, judge_answers, references_of
from spscanner_rag.answers.prompts import AnswerLength
from spscanner_rag.retrieval.language_models import language_model_of


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A question with its reference answers and the texts to answer it from.

    Attributes
    ----------
    qid
        Id of the question in the result.
    question
    contexts
        ``(retrieved_context(...),)``, ``(document,)`` or ``document_windows(document)``.
    references
        Right answers. Without any that is not blank the question is left out and counted.
    choices
        The options of a multiple-choice question, empty for others; references are among them.
    """

    qid: str
    question: str
    contexts: tuple[str, ...]
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """How one question went.

    Attributes
    ----------
    qid
    answer, error, marked
        As in `Answer`. Without an answer, all scores are None.
    token_f1
        0 to 1; None for a multiple-choice question.
    exact_match
        0 or 1; for a multiple-choice question, whether the right option was picked.
    correct
        The judge's decision; None without a judge, and if the judge gave no readable one.
    verdict
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
    scores
        In the order of the tasks.
    without_reference
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
        ``judged`` answers have a decision; of the others ``unparsable`` ones have a reply of the judge that
        could not be read, and ``judge_failed`` ones lack a reply (an answer can be in both).
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
        What `language_model_of` takes: a LlamaIndex LLM, a LangChain chat model or a function. Without a judge
        there is token F1 and exact match only.
    tasks : iterable of AnswerTask
        Taken as the work goes on: a generator of them need not hold all documents.
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
