"""Vectors of sentences from an embedding model that embeds whole texts only."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.embedders import embed_checked, embedder_of
from spscanner_rag.encoder.sentence_encoder import Step, ignore
from spscanner_rag.encoder.sentence_vectors import SentenceVectors, unit_vectors
from spscanner_rag.encoder.token_windows import TokenizedSentences

_TEXTS_AT_ONCE = 64
_MOST_REMEMBERED = 4096  # vectors of texts embedded before a later call failed
_CHARACTERS_PER_TOKEN = 4


class TextEncoder:
    """A `SentenceEncoder` made from an embedder, which embeds whole texts only.

    A sentence's vector is the sum of its own vector and the mean of its windows'
    vectors, each of length 1. Texts embedded before an embedder failed are not embedded
    again. Embedders with one name count as one.

    Parameters
    ----------
    embedder : object
        What `embedder_of` accepts.
    """

    def __init__(self, embedder: object) -> None:
        self._embedder = embedder_of(embedder)
        name = f"{type(embedder).__qualname__}:{self._embedder.name}"
        self.digest = hashlib.sha256(name.encode()).hexdigest()
        self._vector_by_text: dict[str, NDArray[np.float32]] = {}

    def question(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a question, of length 1: (width,)."""
        vectors = embed_checked(self._embedder.queries, [query])
        return np.asarray(unit_vectors(vectors)[0], np.float32)

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """Return the vectors of the sentences.

        Sentences are embedded alone, and in windows of about `WINDOW_TOKENS` tokens;
        their tokens are estimated.

        Raises
        ------
        ValueError
            For NaN, infinity, or vectors of different widths.
        """
        ranges = _windows_of(sentences)
        windows = ["".join(sentences[first:stop]) for first, stop in ranges]
        before(sum(map(_estimated_tokens, [*sentences, *windows])))
        sentence_vectors = self._embedded(sentences, after_step)
        window_vectors = self._embedded(windows, after_step)
        context = np.zeros_like(sentence_vectors)
        for vector, (first, stop) in zip(window_vectors, ranges, strict=True):
            context[first:stop] += vector
        return SentenceVectors.of(sentence_vectors + unit_vectors(context))

    def _embedded(self, texts: Sequence[str], after_step: Step) -> NDArray[np.float32]:
        """Vectors of length 1 of texts, of which some may be known: (texts, width)."""
        vectors: list[NDArray[np.float32]] = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = texts[first : first + _TEXTS_AT_ONCE]
            width = len(vectors[0]) if vectors else None
            vector_by_text = self._vectors_by_text(batch, width)
            self._remember(vector_by_text)
            vectors += [vector_by_text[text] for text in batch]
            after_step(sum(map(_estimated_tokens, batch)))
        return np.stack(vectors) if vectors else np.empty((0, 0), np.float32)

    def _vectors_by_text(
        self, texts: Sequence[str], width: int | None
    ) -> dict[str, NDArray[np.float32]]:
        """Vectors of texts, of which only those not remembered are embedded."""
        vector_by_text = {}
        for text in texts:
            vector = self._vector_by_text.get(text)
            if vector is not None:
                vector_by_text[text] = vector
        missing = [text for text in dict.fromkeys(texts) if text not in vector_by_text]
        if missing:
            embedded = embed_checked(self._embedder.passages, missing, width)
            vector_by_text |= zip(missing, unit_vectors(embedded), strict=True)
        return vector_by_text

    def _remember(self, vector_by_text: dict[str, NDArray[np.float32]]) -> None:
        """Keep the newest vectors, up to `_MOST_REMEMBERED`."""
        self._vector_by_text |= vector_by_text
        for oldest in list(self._vector_by_text)[:-_MOST_REMEMBERED]:
            self._vector_by_text.pop(oldest, None)


def _windows_of(sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of sentences with about `WINDOW_TOKENS` tokens, each once."""
    numbers = []
    for number, sentence in enumerate(sentences):
        numbers.append([number] * _estimated_tokens(sentence))
    tokens = TokenizedSentences.of(numbers)
    ranges = {}  # in order
    for start, stop in tokens.windows():
        first = int(tokens.ids[start])
        last = int(tokens.ids[stop - 1])
        ranges[first, last + 1] = True
    return list(ranges)


def _estimated_tokens(text: str) -> int:
    return len(text) // _CHARACTERS_PER_TOKEN + 1
