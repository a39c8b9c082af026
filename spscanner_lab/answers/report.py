"""Rows, tables and lines of a report on answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from spscanner_lab.answers.answering import AnswerSet
from spscanner_lab.answers.scoring import AnswerScore
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import LENGTH_EDGES, ResultRow, length_bin, rows_of
from spscanner_lab.evaluation.tables import Table

SCORES = ("accuracy", "token_f1", "exact_match")

_COUNTS = (
    "questions",
    "failed",
    "undecided",
    "prompts",
    "prompt tokens",
    "reply tokens",
)
_ABOUT = (
    "Macro means in percent, with 95 % intervals, without failed answers and, for"
    " accuracy, without answers that the judge did not decide. Prompts and their"
    " tokens (o200k_base) are those for answers, without the judge's."
)
_ABOUT_LENGTHS = (
    "Macro means in percent, for documents from this many characters up to the next"
    " line's."
)


def answer_rows(sets: Sequence[AnswerSet], seed: int = 0) -> list[ResultRow]:
    """Return rows as in ``results.json`` of the scores of answers that have them.

    The metrics are "accuracy", "token_f1" and "exact_match". In rows of
    "accuracy_by_length" and the like, ``k`` is the first length of a bin (the paper's
    Figure 3).
    """
    records = []
    settings = []
    for answer_set in sets:
        settings.append(answer_set.setting)
        for document, question, score in answer_set.answers:
            size = len(document.text)
            names = (document.source, document.split, document.doc_id, question.qid)
            metrics = _metrics(score, size)
            record = Record(*answer_set.setting.key, *names, size, metrics)
            records.append(record)
    return rows_of(records, settings, seed)


def _metrics(score: AnswerScore, document_length: int) -> dict[str, float]:
    """Return the scores that an answer has, alone and by the document's length."""
    values = {
        "accuracy": score.correct,
        "token_f1": score.token_f1,
        "exact_match": score.exact_match,
    }
    metrics = {}
    metrics_by_length = {}
    edge = length_bin(document_length)
    for name, value in values.items():
        if value is not None:
            metrics[name] = float(value)
            metrics_by_length[f"{name}_by_length@{edge}"] = float(value)
    return metrics | metrics_by_length


def answer_tables(
    sets: Sequence[AnswerSet], rows: Sequence[ResultRow], judged: bool
) -> list[Table]:
    """Return a table of means and costs, and one of means by length of documents."""
    result = EvaluationResult(rows, (), [answer_set.setting for answer_set in sets])
    lines: list[list[str | ResultRow]] = []
    lines_by_length: list[list[str | ResultRow]] = []
    for answer_set in sets:
        setting = answer_set.setting
        line: list[str | ResultRow] = [setting.label]
        for name in SCORES:
            line.append(result.find(setting, name, None, "macro") or "-")
        line += [f"{count:,}" for count in _counts(answer_set, judged)]
        lines.append(line)
        lines_by_length += _lines_by_length(answer_set, result)
    columns = ["answers from", *SCORES, *_COUNTS]
    columns_by_length = ["answers from", "characters", *SCORES]
    return [
        Table("Answers", _ABOUT, columns, lines),
        Table("Answers by length", _ABOUT_LENGTHS, columns_by_length, lines_by_length),
    ]


def _counts(answer_set: AnswerSet, judged: bool) -> tuple[int, ...]:
    """Return the numbers of a line of the table, in the order of `_COUNTS`."""
    failed = 0
    undecided = 0
    for _, _, score in answer_set.answers:
        if score.answer is None:
            failed += 1
        elif judged and score.correct is None:
            undecided += 1
    answering = answer_set.answering
    questions = len(answer_set.answers)
    return questions, failed, undecided, answering.prompts, *answering.usage


def _lines_by_length(
    answer_set: AnswerSet, result: EvaluationResult
) -> list[list[str | ResultRow]]:
    """Return a line for each length of documents that a set has answers on."""
    setting = answer_set.setting
    lines: list[list[str | ResultRow]] = []
    for edge in LENGTH_EDGES:
        means = [
            result.find(setting, f"{name}_by_length", edge, "macro") for name in SCORES
        ]
        if any(means):
            line: list[str | ResultRow] = [setting.label, f"{edge:,}"]
            line += [mean or "-" for mean in means]
            lines.append(line)
    return lines


def answer_lines(sets: Iterable[AnswerSet]) -> Iterator[dict[str, object]]:
    """Yield a JSON object for each answer, with its scores and the judge's replies."""
    for answer_set in sets:
        for document, question, score in answer_set.answers:
            yield {
                "answers_from": answer_set.setting.label,
                "source": document.source,
                "doc_id": document.doc_id,
                "qid": question.qid,
                "question": question.text,
                "references": list(question.answers),
                **asdict(score),
            }


def counts_of(answer_set: AnswerSet) -> dict[str, object]:
    """Return what a set of answers took, as JSON.

    These are prompts and tokens of the model and of the judge.
    """
    counts: dict[str, object] = {"answers_from": answer_set.setting.label}
    for name in ("answering", "judging"):
        prompts, usage = getattr(answer_set, name)
        counts[name] = {"prompts": prompts, **usage._asdict()}
    return counts
