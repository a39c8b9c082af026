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
from spscanner_rag.lab.evaluation.rows import length_bin
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import Average, Rate, Sample, rate
from spscanner_rag.lab.evaluation.tables import Share, Table
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


class AnswerSource(NamedTuple):
    """What the model answers from: a label, and a function that gives the texts for a question."""

    label: str
    contexts: Callable[[Document, Question], tuple[str, ...]]


class ScoredAnswer(NamedTuple):
    """An answer with the document and the question that it belongs to."""

    document: Document
    question: Question
    score: AnswerScore


class AnswerSet(NamedTuple):
    """The answers from one source, and the prompts and tokens of the model and of the judge."""

    label: str  # of the source
    answers: tuple[ScoredAnswer, ...]  # in the order of the questions
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

        return AnswerSource(setting.label, contexts)

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

    answers: list[ScoredAnswer] = []
    with closing(asker.in_order(tasks(), scored)) as scores:
        for asked, score in zip(questions, scores, strict=True):
            answers.append(ScoredAnswer(*asked, score))
            progress(len(answers))
    judging = Asked() if judge is None else asker.asked(judge)
    return AnswerSet(source.label, tuple(answers), asker.asked(model), judging)


_SCORES: Mapping[str, Callable[[ScoredAnswer], float | None]] = {
    "accuracy": lambda answer: None if answer.score.correct is None else float(answer.score.correct),
    "token_f1": lambda answer: answer.score.token_f1,
    "exact_match": lambda answer: answer.score.exact_match,
}


def answer_rows(sets: Sequence[AnswerSet], seed: int = 0) -> list[dict[str, object]]:
    """A row for each set of answers and source of questions, then for "macro" and "micro", the means over sources.

    A score is None where no answer has it. "length" is None, or where a bin of document lengths begins, in
    characters: rows "macro" for each bin come last (the paper's Figure 3). Counts are in the row "micro" alone.
    """
    return [row for own in sets for row in _rows(own, seed)]


def answer_table(sets: Sequence[AnswerSet], rows: Sequence[Mapping[str, object]], judged: bool) -> Table:
    """A line for each set, with macro means, and what its answers took."""
    macro = {row["answers_from"]: row for row in rows if row["source"] == "macro" and row["length"] is None}
    body: list[list[str | Share]] = []
    for own in sets:
        scores = [_cell(macro[own.label][name]) for name in _SCORES]
        failed = sum(answer.score.answer is None for answer in own.answers)
        undecided = sum(judged and answer.score.correct is None for answer in own.answers) - judged * failed
        counts = (len(own.answers), failed, undecided, own.answering.prompts, *own.answering.usage)
        body.append([own.label, *scores, *(f"{count:,}" for count in counts)])
    about = (
        "Macro means in percent, with 95 % intervals, without the answers that failed and, for accuracy, without "
        "those that the judge did not decide. Prompts are those for answers, without the judge's; tokens of "
        "o200k_base."
    )
    head = ["answers from", "accuracy", "token F1", "exact match", "questions", "failed", "undecided", "prompts",
            "prompt tokens", "reply tokens"]  # fmt: skip
    return Table("Answers", about, head, body)


def length_table(rows: Sequence[Mapping[str, object]]) -> Table:
    """A line for each set of answers and bin of document lengths."""
    body = [
        [str(row["answers_from"]), f"{row['length']:,}", *(_cell(row[name]) for name in _SCORES)]
        for row in rows
        if row["length"] is not None
    ]
    about = "Macro means in percent of the documents from so many characters on, up to the next line's."
    return Table("Answers by length", about, ["answers from", "characters", *_SCORES], body)


def answer_lines(sets: Iterable[AnswerSet]) -> list[dict[str, object]]:
    """A JSON object for each answer, with its scores and the judge's replies."""
    return [
        {
            "answers_from": own.label,
            "source": answer.document.source,
            "doc_id": answer.document.doc_id,
            "qid": answer.question.qid,
            "question": answer.question.text,
            "references": list(answer.question.answers),
            **asdict(answer.score),
        }
        for own in sets
        for answer in own.answers
    ]


def _rows(own: AnswerSet, seed: int) -> list[dict[str, object]]:
    of_source: dict[str, list[ScoredAnswer]] = {}
    of_length: dict[int, list[ScoredAnswer]] = {}
    for answer in own.answers:
        of_source.setdefault(answer.document.source, []).append(answer)
        of_length.setdefault(length_bin(len(answer.document.text)), []).append(answer)

    def row(source: str, length: int | None, answers: Sequence[ScoredAnswer]) -> dict[str, object]:
        average: Average = "micro" if source == "micro" else "macro"
        found = {name: _score(answers, score, average, seed) for name, score in _SCORES.items()}
        return {"answers_from": own.label, "source": source, "length": length, **found}

    rows = [row(source, None, of_source[source]) for source in sorted(of_source)]
    rows += [row("macro", None, own.answers), row("micro", None, own.answers)]
    rows[-1] |= {"answering": _counts(own.answering), "judging": _counts(own.judging)}
    return rows + [row("macro", length, of_length[length]) for length in sorted(of_length)]


def _score(
    answers: Iterable[ScoredAnswer],
    score: Callable[[ScoredAnswer], float | None],
    average: Average,
    seed: int,
) -> Rate | None:
    pairs: dict[str, list[tuple[float, str]]] = {}
    for answer in answers:
        if (value := score(answer)) is not None:
            pairs.setdefault(answer.document.source, []).append((value, answer.document.doc_id))
    return rate({source: Sample.of(pairs[source]) for source in sorted(pairs)}, average, seed)


def _counts(asked: Asked) -> dict[str, int]:
    prompt_tokens, reply_tokens = asked.usage
    return {"prompts": asked.prompts, "prompt_tokens": prompt_tokens, "reply_tokens": reply_tokens}


def _cell(score: object) -> str | Share:
    if not isinstance(score, dict):
        return "-"
    return Share(value=score["value"], ci_low=score["ci_low"], ci_high=score["ci_high"])
