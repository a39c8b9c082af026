"""The same question in other words, so that a scanner does not only learn to find the question's own words."""

import random
import re
from dataclasses import replace
from functools import lru_cache

import numpy as np

from spscanner_rag.lab.training.data.question_draw import Drawn
from spscanner_rag.lexical.languages import STOP_WORDS
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import stems_of

LEAST_COSINE = 0.65
"""Words are exchanged only for words that are at least so near."""

MOST_CHOICES = 3
WORD_SHARE = 0.4
"""The share of a question's words that are exchanged, where they can be."""

_WORD = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS = 3
_SAME_START = 4  # letters; "building" is no other word for "built"


class OtherWords:
    """Exchanges words of questions for words of like meaning, by a table of word vectors.

    Names, numbers and stop words stay, since another name is another question.

    Parameters
    ----------
    vectors : WordVectors
    share : float
        The share of the questions whose words are exchanged.
    """

    def __init__(self, vectors: WordVectors, share: float) -> None:
        self._vectors, self._share = vectors, share
        self._all = vectors.of_rows(np.arange(len(vectors)))  # (words, dimensions)
        self.choices = lru_cache(maxsize=None)(self._choices)

    def drawn(self, drawn: Drawn, draw: random.Random) -> Drawn:
        """The drawn question, in ``share`` of the cases in other words."""
        if draw.random() >= self._share:
            return drawn
        return replace(drawn, question=replace(drawn.question, text=self.text(drawn.question.text, draw)))

    def text(self, question: str, draw: random.Random) -> str:
        """A question with `WORD_SHARE` of its words exchanged."""

        def other(found: re.Match[str]) -> str:
            word = found.group()
            choices = () if word != word.lower() else self.choices(word)
            return draw.choice(choices) if choices and draw.random() < WORD_SHARE else word

        return _WORD.sub(other, question)

    def _choices(self, word: str) -> tuple[str, ...]:
        """The nearest words that have neither the stem nor the beginning of this one."""
        (row,) = self._vectors.rows([word])
        if row < 0 or word in STOP_WORDS or len(word) < _LEAST_LETTERS:
            return ()
        cosines = self._all @ self._all[row]
        near = np.flatnonzero(cosines >= LEAST_COSINE)
        words = [self._vectors.words[n] for n in near[np.argsort(-cosines[near], kind="stable")]]
        words = [other for other in words if _WORD.fullmatch(other) and other not in STOP_WORDS]
        (stem,), stems = stems_of([word]), stems_of(words)
        kept = [
            other
            for other, own in zip(words, stems, strict=True)
            if own != stem and other[:_SAME_START] != word[:_SAME_START]
        ]
        return tuple(kept[:MOST_CHOICES])
