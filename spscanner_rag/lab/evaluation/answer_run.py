"""Lets a language model answer the questions of a run, from what each retriever finds or from whole documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from threading import Event
from typing import NamedTuple

from spscanner_rag.lab.answers.answering import (
    WINDOW_TOKENS,
    AnswerScore,
    answer_score,
    best_words,
    document_windows,
    references_of,
    retrieved_context,
)
from spscanner_rag.lab.answers.prompts import AnswerLength
from spscanner_rag.lab.evaluation.corpora import segmenter_for
from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.result import Result
from spscanner_rag.lab.evaluation.rows import LENGTH_EDGES, Row, length_bin, rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.tables import Share, Table
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked as AskedQuestion
from spscanner_rag.lab.evidence.sampling import by_document
from spscanner_rag.lab.llm.asking import Asked, Asker
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.scorers import Scorer

WHOLE_DOCUMENT = Setting("whole document", "")
"""Answers from the full context: the direct-answer baseline of the paper's appendix E.3."""

SCORES = ("accuracy", "token_f1", "exact_match")

PAPER_UNITS = {"sentence": 50, "chunk": 5}
"""How many of the best units the model reads; other kinds of units are given ten."""


class AnswerSource(NamedTuple):
    """What the model answers from: a setting, and a function that gives the texts for a question."""

    setting: Setting
    contexts: Callable[[Document, Question], tuple[str, ...]]


class AnswerSet(NamedTuple):
    """The answers from one source, and the prompts and tokens of the model and of the judge."""

    setting: Setting  # of the source
    answers: tuple[tuple[Document, Question, AnswerScore], ...]  # in the order of the questions
    answering: Asked
    judging: Asked


def retriever_sources(
    settings: Sequence[Setting],
    scorers: Mapping[Setting, Scorer],
    titles: dict[str, str],
    best: int | None = None,
    words: int | None = None,
) -> list[AnswerSource]:
    """A source for each setting: ``best`` units, else the paper's 50 sentences or 5 chunks. Fills ``titles``.

    With ``words`` it is so many words of the best units, as in EM@l of Dense X Retrieval (Chen et al., 2024).
    """

    def source(setting: Setting) -> AnswerSource:
        scorer = scorers[setting]
        segmenter = segmenter_for(setting.unit, scorer)
        top_k = PAPER_UNITS.get(setting.unit, 10) if best is None else best

        def contexts(document: Document, question: Question) -> tuple[str, ...]:
            titles.clear()
            titles[document.text] = document.title
            units = segmenter.segment(document.text)
            if words is not None:
                return (best_words(scorer, question.text, document.text, units, words),)
            return (retrieved_context(scorer, question.text, document.text, units, top_k),)

        return AnswerSource(setting, contexts)

    return list(map(source, settings))


def whole_documents(window_tokens: int = WINDOW_TOKENS) -> AnswerSource:
    """The source that is the document itself, in overlapping windows if it is longer; see `document_windows`."""
    return AnswerSource(WHOLE_DOCUMENT, lambda document, _: document_windows(document.text, window_tokens))


def questions_with_answers(questions: Mapping[str, Sequence[AskedQuestion]]) -> list[AskedQuestion]:
    """The questions that have a reference answer, document by document; ``ValueError`` if there is none."""
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
    length: AnswerLength | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> AnswerSet:
    """Score a model's answers to `questions_with_answers` from one source; ``progress`` gets the questions done.

    Without a ``length`` each is asked for in the form that its question names, else in a sentence.
    """
    asker = replace(asker, stop=Event())  # counts anew

    def tasks() -> Iterator[tuple[Question, tuple[str, ...]]]:
        for document, question in questions:
            yield question, source.contexts(document, question)

    def scored(task: tuple[Question, tuple[str, ...]]) -> AnswerScore:
        form: AnswerLength = length or task[0].answer_form or "sentence"  # type: ignore[assignment]
        return answer_score(*task, form, model, judge, asker)

    answers: list[tuple[Document, Question, AnswerScore]] = []
    with closing(asker.in_order(tasks(), scored)) as scores:
        for asked, score in zip(questions, scores, strict=True):
            answers.append((*asked, score))
            progress(len(answers))
    judging = Asked() if judge is None else asker.asked(judge)
    return AnswerSet(source.setting, tuple(answers), asker.asked(model), judging)


def answer_rows(sets: Sequence[AnswerSet], seed: int = 0) -> list[Row]:
    """Rows as in ``results.json`` of "accuracy", "token_f1" and "exact_match", over the answers that have them.

    Those of "accuracy_by_length" and the like have the first length of a bin as ``k`` (the paper's Figure 3).
    """
    return rows_of([record for own in sets for record in _records(own)], [own.setting for own in sets], seed)


def _records(own: AnswerSet) -> Iterator[Record]:
    for document, question, score in own.answers:
        scores = {"accuracy": score.correct, "token_f1": score.token_f1, "exact_match": score.exact_match}
        metrics = {name: float(value) for name, value in scores.items() if value is not None}
        size = len(document.text)
        metrics |= {f"{name}_by_length@{length_bin(size)}": value for name, value in metrics.items()}
        names = (document.source, document.split, document.doc_id, question.qid)
        yield Record(*own.setting.key, *names, size, metrics)


def answer_tables(sets: Sequence[AnswerSet], rows: Sequence[Row], judged: bool) -> list[Table]:
    """A line for each set with macro means and what its answers took, and for each set and length of documents."""
    result = Result(rows, (), [own.setting for own in sets])
    body: list[list[str | Share]] = []
    for own in sets:
        scores = [result.find(own.setting, name, None, "macro") or "-" for name in SCORES]
        failed = sum(score.answer is None for *_, score in own.answers)
        undecided = sum(judged and score.correct is None for *_, score in own.answers) - judged * failed
        counts = (len(own.answers), failed, undecided, own.answering.prompts, *own.answering.usage)
        body.append([own.setting.label, *scores, *(f"{count:,}" for count in counts)])
    about = (
        "Macro means in percent, with 95 % intervals, without the answers that failed and, for accuracy, without "
        "those that the judge did not decide. Prompts are those for answers, without the judge's; tokens of "
        "o200k_base."
    )
    head = [
        "answers from",
        *SCORES,
        "questions",
        "failed",
        "undecided",
        "prompts",
        "prompt tokens",
        "reply tokens",
    ]
    by_length: list[list[str | Share]] = []
    for own in sets:
        for edge in LENGTH_EDGES:
            found = [result.find(own.setting, f"{name}_by_length", edge, "macro") for name in SCORES]
            if any(found):
                by_length.append([own.setting.label, f"{edge:,}", *(row or "-" for row in found)])
    lengths = "Macro means in percent of the documents from so many characters on, up to the next line's."
    return [
        Table("Answers", about, head, body),
        Table("Answers by length", lengths, ["answers from", "characters", *SCORES], by_length),
    ]


def answer_lines(sets: Iterable[AnswerSet]) -> Iterator[dict[str, object]]:
    """A JSON object for each answer, with its scores and the judge's replies."""
    for own in sets:
        for document, question, score in own.answers:
            yield {
                "answers_from": own.setting.label,
                "source": document.source,
                "doc_id": document.doc_id,
                "qid": question.qid,
                "question": question.text,
                "references": list(question.answers),
                **asdict(score),
            }


def counts_of(own: AnswerSet) -> dict[str, object]:
    """What a set of answers was asked: prompts and tokens of the model and of the judge, as JSON."""
    asked = {"answering": own.answering, "judging": own.judging}
    return {"answers_from": own.setting.label} | {
        name: {"prompts": each.prompts, **each.usage._asdict()} for name, each in asked.items()
    }
