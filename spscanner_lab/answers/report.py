"""Rows and lines of a report on answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from spscanner_lab.answers.answering import AnswerSet
from spscanner_lab.answers.scoring import AnswerScore
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.rows import ResultRow, length_bin, rows_of
from spscanner_lab.evidence.questions import Document

SCORES = ("accuracy", "token_f1", "exact_match")


class AnswerRows(NamedTuple):
    """The rows of a report, as in ``results.json``.

    Attributes
    ----------
    of_sources : list
        By source, then "macro" and "micro"; for the released data, by benchmark.
    of_categories : dict
        The same for the questions of each category; empty if the data have none.
    """

    of_sources: list[ResultRow]
    of_categories: dict[str, list[ResultRow]]


def answer_rows(
    sets: Sequence[AnswerSet],
    seed: int = 0,
    count_tokens: Callable[[str], int] | None = None,
) -> AnswerRows:
    """Return rows as in ``results.json`` of the scores of answers that have them.

    The metrics are "accuracy", "token_f1" and "exact_match". In rows of
    "accuracy_by_length" and the like, ``k`` is the first length of a bin in tokens (the
    paper's Figure 3): those that the data say, else those that ``count_tokens`` counts.
    Without either there are no such rows.
    """
    lengths = _Lengths(count_tokens)
    records: list[Record] = []
    records_by_category: dict[str, list[Record]] = {}
    settings = []
    for answer_set in sets:
        settings.append(answer_set.setting)
        for document, question, score in answer_set.answers:
            names = (document.source, document.split, document.doc_id, question.qid)
            metrics = _metrics(score, lengths.bin_of(document))
            size = len(document.text)
            record = Record(*answer_set.setting.key, *names, size, metrics)
            records.append(record)
            if document.category:
                of_category = records_by_category.setdefault(document.category, [])
                of_category.append(record)
    of_categories = {}
    for category, of_category in sorted(records_by_category.items()):
        of_categories[category] = rows_of(of_category, settings, seed)
    return AnswerRows(rows_of(records, settings, seed), of_categories)


class _Lengths:
    """The bins of documents by length, each document counted once."""

    def __init__(self, count_tokens: Callable[[str], int] | None) -> None:
        self._count_tokens = count_tokens
        self._bins: dict[tuple[str, str], int | None] = {}

    def bin_of(self, document: Document) -> int | None:
        """The start of a document's bin.

        None if nobody knows its length.
        """
        key = (document.source, document.doc_id)
        if key not in self._bins:
            tokens = document.tokens
            if tokens is None and self._count_tokens is not None:
                tokens = self._count_tokens(document.text)
            self._bins[key] = None if tokens is None else length_bin(tokens)
        return self._bins[key]


def _metrics(score: AnswerScore, edge: int | None) -> dict[str, float]:
    """Return the scores that an answer has, alone and by the document's length."""
    values = {
        "accuracy": score.correct,
        "token_f1": score.token_f1,
        "exact_match": score.exact_match,
    }
    metrics = {}
    metrics_by_length = {}
    for name, value in values.items():
        if value is not None:
            metrics[name] = float(value)
            if edge is not None:
                metrics_by_length[f"{name}_by_length@{edge}"] = float(value)
    return metrics | metrics_by_length


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
