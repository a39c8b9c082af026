"""A question matched with a text, and the two laid out as the model reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.lexical.token_values import TokenValues
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.scan.indexed_text import IndexedText

T = TypeVar("T", bound=np.generic)

QUESTION_CLASS = 6  # match class of the question's own tokens

TokenSlices = NDArray[T] | TokenValues[T]
"""Values of a text's tokens, of which a slice is an array."""


@dataclass(frozen=True, slots=True)
class QueryOnText:
    """A question matched with a text.

    `sequence` lays out the whole text, or some of its units, for the model.
    """

    text: IndexedText
    question_ids: NDArray[np.int32]  # (question tokens,)
    # The question is repeated after the first end token of a unit that comes at least
    # this many text tokens after the last repetition; None: never.
    repeat_every: int | None = None
    match_classes: TokenSlices[np.uint8] | None = None  # (text tokens,)
    prior: NDArray[np.float32] | None = None  # (units, lexical scores)
    match_features: TokenSlices[np.float32] | None = None  # (text tokens, 4)
    question_features: NDArray[np.float32] | None = None  # (question tokens, 4)
    # Added to every logit: how far the whole text is behind the best of its collection.
    offset: float = 0.0
    # How far its best sentences are behind those of the best text, in mean cosine.
    behind: float = 0.0
    # Whether the cross-reader leaves it out, beside likelier texts.
    is_far_behind: bool = False
    # (units,) of the question and a unit; None without an encoder
    cosines: NDArray[np.float32] | None = None
    meaning: Meaning | None = None  # what made the cosines
    # (units,) the logits of a sentence scan; None without one
    estimates: NDArray[np.float32] | None = None
    query: str = ""  # what is read of the question
    # False if the estimates stand for the model's logits, and it reads nothing
    reads: bool = True

    def logits(
        self,
        model_logits: NDArray[np.float32],
        is_read: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """The units' final logits, from those of the model, each (units,).

        A unit that the model has not read, by ``is_read`` (units,), gets its estimate.
        """
        if self.cosines is None or self.meaning is None:
            return model_logits + np.float32(self.offset)
        weights = self.meaning.weights
        logits = weights.logits(model_logits, self.cosines, self.estimates)
        if is_read is not None and self.estimates is not None:
            unread = weights.unread_logits(self.estimates)
            logits = np.where(is_read, logits, unread)
        return logits + self._meaning_offset

    def averaged_with(self, other: "QueryOnText") -> "QueryOnText":
        """Return this with the mean scores of two questions on the text."""
        cosines = _mean(self.cosines, other.cosines)
        estimates = _mean(self.estimates, other.estimates)
        return replace(
            self,
            offset=(self.offset + other.offset) / 2,
            cosines=cosines,
            estimates=estimates,
        )

    @property
    def encoder(self) -> str | None:
        """The name of the encoder that made the vectors, if there is one."""
        return None if self.meaning is None else self.meaning.name

    @property
    def likelihoods(self) -> NDArray[np.float32] | None:
        """Estimates that are comparable within a collection: (units,)."""
        if self.estimates is None or self.meaning is None:
            return None
        return self.meaning.weights.unread_logits(self.estimates) + self._meaning_offset

    @property
    def _meaning_offset(self) -> np.float32:
        assert self.meaning is not None
        is_scanned = self.estimates is not None
        weights = self.meaning.weights
        return weights.behind_others(self.offset, self.behind, is_scanned)

    def sequence(self, first: int = 0, last: int | None = None) -> TokenSequence:
        """Lay out the question before the tokens of units ``first`` to ``last``.

        ``last`` is included, and by default the last unit of the text.
        """
        n_units = len(self.text.unit_ends)
        if last is None:
            last = n_units - 1
        token_ends = self.text.unit_ends[first : last + 1]
        begin = 0
        if first:  # a unit may begin in the last token of the unit before
            begin = min(int(self.text.unit_ends[first - 1]) + 1, int(token_ends[0]))
        stop = int(token_ends[-1]) + 1 if n_units else 0
        repetitions = _repetitions(token_ends, begin, stop, self.repeat_every)
        anchors = np.array([begin, *repetitions], dtype=np.int64)
        # (units,): how many times the question stands before the end of each
        questions = np.searchsorted(anchors, token_ends, side="right")

        def interleaved(
            question: NDArray[Any], tokens: TokenSlices[Any]
        ) -> NDArray[Any]:
            parts = []
            for stretch in np.split(tokens[begin:stop], anchors[1:] - begin):
                parts += [question, stretch]
            return np.concatenate(parts)

        features = None
        if self.match_features is not None and self.question_features is not None:
            features = interleaved(self.question_features, self.match_features)
        classes = None
        if self.match_classes is not None:
            question_classes = np.full(len(self.question_ids), QUESTION_CLASS, np.uint8)
            classes = interleaved(question_classes, self.match_classes)
        return TokenSequence(
            interleaved(self.question_ids, self.text.input_ids),
            token_ends - begin + questions * len(self.question_ids),
            classes,
            None if self.prior is None else self.prior[first : last + 1],
            features,
        )


def _mean(
    left: NDArray[np.float32] | None, right: NDArray[np.float32] | None
) -> NDArray[np.float32] | None:
    if left is None or right is None:
        return None
    return np.asarray((left + right) / 2, np.float32)


def _repetitions(
    token_ends: NDArray[np.int64], begin: int, stop: int, every: int | None
) -> Iterator[int]:
    """Yield the text tokens before which the question is repeated."""
    position = begin
    while every:
        unit = int(np.searchsorted(token_ends, position + every - 1))
        if unit == len(token_ends) or int(token_ends[unit]) + 1 >= stop:
            return
        position = int(token_ends[unit]) + 1
        yield position
