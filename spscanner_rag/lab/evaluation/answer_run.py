"""Lets a language model answer the questions of a run, from what each retriever finds or from whole documents."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.lab.answers.answering import (
    WINDOW_TOKENS,
    AnswerScore,
    AnswerTask,
    answer_quality,
    document_windows,
    references_of,
    retrieved_context,
)
from spscanner_rag.lab.answers.prompts import AnswerLength
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked as AskedQuestion
from spscanner_rag.lab.evidence.sampling import by_document
from spscanner_rag.lab.llm.asking import Asked, Asker
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.scorers import Scorer

WHOLE_DOCUMENT = "whole document"
"""The label of answers from the full context: the direct-answer baseline of the paper's appendix E.3."""

PAPER_UNITS = {"sentence": 50, "chunk": 5}
"""How many of the best units the model reads; other kinds of units are given ten."""

Contexts = Callable[[Document, Question], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """What the model answers from: a label, and a function that gives the texts for a question."""

    label: str
    contexts: Contexts


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """An answer with the document and the question that it belongs to."""

    document: Document
    question: Question
    score: AnswerScore


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The answers from one source, and what they took.

    Attributes
    ----------
    label
        Of the source.
    answers
        In the order of the questions.
    answering, judging
        Prompts and tokens of the model that answered and of the judge.
    """

    label: str
    answers: tuple[ScoredAnswer, ...]
    answering: Asked
    judging: Asked


def retriever_sources(
    settings: Sequence[Setting], scorers: Mapping[Setting, Scorer], titles: dict[str, str]
) -> list[AnswerSource]:
    """A source for each setting: its best units, 50 sentences or 5 chunks as in the paper.

    ``titles`` is filled with the title of the document that is being read, as in `titled`.
    """
    return [
        AnswerSource(setting.label, _best_units(setting, scorers[setting], titles)) for setting in settings
    ]


def whole_documents(window_tokens: int = WINDOW_TOKENS) -> AnswerSource:
    """The source that is the document itself, in overlapping windows if it is longer; see `document_windows`."""
    return AnswerSource(WHOLE_DOCUMENT, lambda document, _: document_windows(document.text, window_tokens))


def questions_with_answers(questions: Mapping[str, Sequence[AskedQuestion]]) -> list[AskedQuestion]:
    """The questions that have a reference answer, document by document.

    Raises ``ValueError`` if there is none.
    """
    found = [
        (document, question)
        for asked in questions.values()
        for document, own in by_document(asked)
        for question in own
        if references_of(question.answers)
    ]
    if not found:
        raise ValueError(
            "--answers: got questions without right answers to compare with; expected a list of them under "
            "'answers' of at least one question"
        )
    return found


def answer_from(
    source: AnswerSource,
    questions: Sequence[AskedQuestion],
    model: LanguageModel,
    judge: LanguageModel | None,
    asker: Asker,
    length: AnswerLength = "sentence",
) -> AnswerSet:
    """Let a model answer all questions from one source, and score the answers.

    ``questions`` are from `questions_with_answers`. The asker's counts start anew.
    """
    asker.asked.clear()

    def tasks() -> Iterator[AnswerTask]:
        for document, question in questions:
            contexts = source.contexts(document, question)
            yield AnswerTask(question.qid, question.text, contexts, question.answers, question.choices)

    quality = answer_quality(model, tasks(), judge=judge, asker=asker, length=length)
    answers = (ScoredAnswer(*asked, score) for asked, score in zip(questions, quality.scores, strict=True))
    judging = Asked() if judge is None else asker.asked.get(judge, Asked())
    return AnswerSet(source.label, tuple(answers), asker.asked.get(model, Asked()), judging)


def _best_units(setting: Setting, scorer: Scorer, titles: dict[str, str]) -> Contexts:
    segmenter = segmenter_of(setting.unit)  # type: ignore[arg-type]  # checked when the settings were made
    top_k = PAPER_UNITS.get(setting.unit, 10)

    def contexts(document: Document, question: Question) -> tuple[str, ...]:
        titles.clear()
        titles[document.text] = document.title
        units = segmenter.segment(document.text)
        found = retrieved_context(scorer, question.text, document.text, units=units, top_k=top_k)
        return (found,)

    return contexts
