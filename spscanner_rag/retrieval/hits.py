"""A selected passage of a joined text, with its scores."""

from typing import NamedTuple

from spscanner_rag.retrieval.joined_text import Place


class Hit(NamedTuple):
    """A selected passage and where it comes from.

    Attributes
    ----------
    text : str
        The passage.
    score : float
        The score of its best sentence: how much it is worth keeping, from 0 to 1, or
        of a scorer without such scores the probability.
    logit : float
        The logit of its best sentence.
    probability : float
        The sigmoid of the logit.
    text_number : int
        Index of its text among those that were searched.
    place : Place
        Where it comes from.
    start, end : int
        Its span in its text.
    document_score : float
        The score of the best sentence of its text, selected or not.
    answerable : float or None
        The probability that its text answers, if the scorer reports it.
    """

    text: str
    score: float
    logit: float
    probability: float
    text_number: int
    place: Place
    start: int
    end: int
    document_score: float
    answerable: float | None = None
