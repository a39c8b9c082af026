"""A sentence of a document with its score."""

from dataclasses import dataclass

from spscanner_rag.results.excerpts import quoted_excerpt


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

    Examples
    --------
    >>> ScoredSentence("The keeper signed it.", 0, 21, logit=0.0, score=0.5)
    ScoredSentence('The keeper signed it.', start=0, end=21, logit=0, score=0.5)
    """

    text: str
    start: int
    end: int
    logit: float
    score: float

    def __repr__(self) -> str:
        return (
            f"ScoredSentence({quoted_excerpt(self.text)}, start={self.start},"
            f" end={self.end}, logit={self.logit:.4g}, score={self.score:.4g})"
        )
