"""Cosines of a question with sentences in another language.

The vectors of a language have something in common, as do those of questions in it. It
says nothing about what a sentence means, but which sentences lack it decides which are
nearest to a question in another language. So the mean of each language is taken off.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.text.language_parts import UNKNOWN, question_language
from spscanner_rag.text.scripts import HAN, has_kana

SHARE_OF_MEAN: Final = 0.9
"""The share of a language's mean that is taken off; 0.7 is as good, 0.5 is worse."""

FEWEST_SENTENCES: Final = 8
"""A language of fewer sentences has no mean of its own: it would be what they say."""

OWN_SHARE: Final = 0.9
"""From this share of sentences on in the question's language, nothing is taken off."""

_KANA: Final = "kana"
_SHORTEST: Final = 1e-6


@cache
def questions() -> Mapping[str, tuple[str, ...]]:
    """Return the same twelve questions in each language or script.

    They are about all sorts of things.
    """
    folder = files("spscanner_rag.encoder")
    by_language = {}
    for line in folder.joinpath("questions.txt").read_text("utf-8").splitlines():
        language, _, text = line.partition(": ")
        by_language[language] = tuple(text.split("|"))
    return by_language


class QuestionMeans:
    """The mean vectors of an encoder's questions in each language.

    Each is made when it is first needed. A language without questions gets the mean of
    all others.

    Parameters
    ----------
    encoder : SentenceEncoder
        Makes the vectors.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._of_language = lru_cache(None)(self._made)

    def of(self, question: str) -> NDArray[np.float32]:
        """Return the mean of questions in the language of one: (width,)."""
        language = question_language(question)
        if language == HAN and has_kana(question):
            language = _KANA
        return self._of_language(language if language in questions() else UNKNOWN)

    def _made(self, language: str) -> NDArray[np.float32]:
        if language == UNKNOWN:
            vectors = [self._of_language(name) for name in questions()]
        else:
            vectors = [self._encoder.question(text) for text in questions()[language]]
        return np.asarray(np.mean(vectors, axis=0), np.float32)


def reads_across(question: str, languages: Sequence[str]) -> bool:
    """Return whether a question is in another language than sentences of a text.

    Parameters
    ----------
    question : str
        The question.
    languages : sequence of str
        The language of each sentence, as of `text.language_parts`.

    Examples
    --------
    >>> reads_across("Wer hat das geschrieben?", ["han"] * 20)
    True
    >>> reads_across("Wer hat das geschrieben?", ["han"])
    False
    """
    own_language = question_language(question)
    counts = Counter(languages)
    del counts[UNKNOWN]
    if own_language == UNKNOWN or len(languages) < FEWEST_SENTENCES:
        return False
    return counts[own_language] < OWN_SHARE * counts.total()


def cosines_across(
    question: NDArray[np.float32],
    question_mean: NDArray[np.float32],
    vectors: SentenceVectors,
    languages: Sequence[str],
) -> NDArray[np.float32]:
    """Return the cosines of a question with sentences, (sentences,), without means.

    Their mean and deviation over the text are those of the plain cosines.

    Parameters
    ----------
    question : array (width,)
        The vector of the question.
    question_mean : array (width,)
        The mean of questions in its language.
    vectors : SentenceVectors
        Those of the sentences.
    languages : sequence of str
        The language of each sentence.
    """
    cosines = vectors.cosines(question)
    direction = question - SHARE_OF_MEAN * question_mean
    products = vectors.cosines(direction)
    centred = np.empty_like(cosines)
    for chosen in _groups(languages):
        mean = SHARE_OF_MEAN * vectors.mean(chosen)
        squares = 1 - 2 * vectors.cosines(mean)[chosen] + mean @ mean
        lengths = np.sqrt(np.maximum(squares, _SHORTEST))
        centred[chosen] = (products[chosen] - mean @ direction) / lengths
    deviation = max(float(centred.std()), _SHORTEST)
    standardized = (centred - centred.mean()) / deviation
    return np.asarray(standardized * cosines.std() + cosines.mean(), np.float32)


def _groups(languages: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Which sentences share a mean, (sentences,) each: every sentence is in one group.

    Those in rare languages are in one group.
    """
    named = np.array(languages)
    rest = np.ones(len(named), bool)
    groups = []
    for language, count in Counter(languages).items():
        if language != UNKNOWN and count >= FEWEST_SENTENCES:
            chosen = named == language
            rest &= ~chosen
            groups.append(chosen)
    if rest.any():
        groups.append(rest)
    return groups
