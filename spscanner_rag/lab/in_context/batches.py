"""Batches of queries that all see all documents of the batch."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from spscanner_rag.lab.in_context.layout import draw_codes
from spscanner_rag.lab.training.data.columns import PassageColumn
from spscanner_rag.lab.training.data.wrong_favourite import bm25_scores
from spscanner_rag.lexical.words import index_words


class ColumnSupply(Protocol):
    """What has columns, such as a `PassageDraw`."""

    def column(self, number: int) -> PassageColumn:
        """Column ``number``, the same whenever it is asked for."""


TeacherOf = Callable[[PassageColumn], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents with codes, and queries that see all of them."""

    texts: list[str]
    codes: list[int]
    questions: list[str]
    columns: list[list[int]]  # the documents of each query's column, the right one first
    teacher: list[Sequence[float]]  # a score for each document of a column


def word_scores(column: PassageColumn) -> Sequence[float]:
    """BM25 of the passages of a column among themselves; the labelled one has no less than the best: a teacher."""
    scores = bm25_scores(index_words(column.passages), column.question)
    scores[0] = scores.max() + 1.0
    return [float(score) for score in scores]


def batch_of(
    columns: Sequence[PassageColumn], draw: random.Random, teacher: TeacherOf = word_scores
) -> Batch:
    """A batch whose codes are drawn anew; a passage of several columns is one document."""
    texts = list(dict.fromkeys(text for column in columns for text in column.passages))
    draw.shuffle(texts)
    place = {text: number for number, text in enumerate(texts)}
    return Batch(
        texts,
        draw_codes(len(texts), draw),
        [column.question for column in columns],
        [[place[text] for text in column.passages] for column in columns],
        [teacher(column) for column in columns],
    )
