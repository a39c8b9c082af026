"""What a model is trained on: a question with a stretch of one document, or with stretches of several."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.scan.prepare import QueryOnText


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence, or a group: the sequences of ``others`` have its question and are ranked with it."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)
    teacher: NDArray[np.float32] | None = None  # (units,): scores with a spread of about one
    others: tuple["Example", ...] = ()

    @property
    def stretches(self) -> tuple["Example", ...]:
        """All sequences of the group, this one first."""
        return (self, *self.others)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question on a document whose sentences are labelled, to be cut into examples."""

    asked: QueryOnText
    relevant: NDArray[np.bool_]  # (units,)
    teacher: NDArray[np.float32] | None = None  # (units,)

    def cut(self, first: int, last: int) -> Example:
        """The units ``first`` to ``last``, inclusive."""
        inside = slice(first, last + 1)
        teacher = None if self.teacher is None else self.teacher[inside]
        return Example(self.asked.sequence(first, last), self.relevant[inside], teacher)
