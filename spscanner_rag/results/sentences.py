"""The pieces of a scan's result: one scored sentence, one passage of selected sentences, and all as arrays."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, repr=False)
class ScoredSentence:
    """One sentence of the document.

    Attributes
    ----------
    text : str
        The sentence, ``document[start:end]``.
    start, end : int
        Its span in the document, in characters, without the white space around it.
    logit : float
        The scanner's output, float32 as a Python float.
    score : float
        Sigmoid of the logit, from 0 to 1.
    """

    text: str
    start: int
    end: int
    logit: float
    score: float

    def __repr__(self) -> str:
        return (
            f"ScoredSentence({shortened(self.text)}, start={self.start}, end={self.end}, "
            f"logit={self.logit:.4g}, score={self.score:.4g})"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """A selected sentence, or a run of adjacent selected sentences merged into one.

    Attributes
    ----------
    text : str
        The passage, ``document[start:end]``.
    start, end : int
        Its span in the document, in characters.
    score : float
        The score of its sentence, or the highest score of its sentences.
    """

    text: str
    start: int
    end: int
    score: float

    def __repr__(self) -> str:
        return f"Passage({shortened(self.text)}, start={self.start}, end={self.end}, score={self.score:.4g})"


class ScoredText(Protocol):
    """What the outputs of a `ScanResult` read of it; its docstring describes the attributes."""

    @property
    def query(self) -> str:
        """The question."""
        ...

    @property
    def text(self) -> str:
        """The document."""
        ...

    @property
    def starts(self) -> NDArray[np.int64]:
        """Spans of the sentences begin here: (sentences,)."""
        ...

    @property
    def ends(self) -> NDArray[np.int64]:
        """Spans end before here: (sentences,)."""
        ...

    @property
    def logits(self) -> NDArray[np.float32]:
        """The output for each sentence: (sentences,)."""
        ...

    @property
    def scores(self) -> NDArray[np.float64]:
        """Sigmoid of the logits: (sentences,)."""
        ...

    @property
    def sentences(self) -> tuple[ScoredSentence, ...]:
        """All sentences in document order."""
        ...

    @property
    def tokens_read(self) -> int | None:
        """Tokens of the document that were read, if they were counted."""
        ...


def shortened(text: str, characters: int = 60) -> str:
    """The text, quoted, with at most ``characters`` characters."""
    return repr(text if len(text) <= characters else text[: characters - 1] + "…")
