"""What every encoder of sentences does."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.sentence_vectors import SentenceVectors

Step = Callable[[int], None]
"""Called with a number of tokens that will be read, or were read in a step; an
exception ends the reading."""


def ignore(tokens: int) -> None:
    """Do nothing: the `Step` of work that nobody watches."""


class SentenceEncoder(Protocol):
    """Makes the vectors of questions and of sentences in their context."""

    digest: str
    """Vectors may be compared if their encoders have the same digest."""

    def question(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a question, of length 1: (width,)."""
        ...

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """Return the vectors of the sentences of one text, in order.

        Parameters
        ----------
        sentences : sequence of str
            The sentences of the text.
        before : callable, optional
            Called with the number of tokens to read.
        after_step : callable, optional
            Called with the number of tokens read in each step.
        """
        ...
