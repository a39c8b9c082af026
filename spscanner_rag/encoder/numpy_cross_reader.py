"""A cross-reader that computes in numpy, without torch."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.encoder.numpy_bert import NumpyBert
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.encoder.sentence_vectors import unit_vectors

Floats = NDArray[np.float32]


class NumpyCrossReader(SentenceCrossReader):
    """A `SentenceCrossReader` that computes in numpy's float32.

    Parameters
    ----------
    model : NumpyBert
        The encoder's layers, trained further.
    tokenizer : Tokenizer
        The encoder's tokenizer.
    head : array (hidden_size + 2,)
        The weights of the sentence's vector, the logarithm of the scale, and the bias.
    """

    def __init__(self, model: NumpyBert, tokenizer: Tokenizer, head: Floats) -> None:
        super().__init__(model.shape, tokenizer)
        self.model = model
        self.head = head

    def window_logits(
        self, question: list[int], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[Floats]:
        """Return the logits, (sentences,), of each window."""
        layout = self.laid_out([question] * len(windows), windows)
        states = self.model.states(layout.rows, layout.second_begins)
        means = _means(states, np.array(layout.vector_of_token), layout.n_vectors)
        lengths = [len(sentences) for sentences in windows]
        sentences = means[len(lengths) :]  # (sentences, hidden_size)
        questions = np.repeat(means[: len(lengths)], lengths, axis=0)
        cosines = np.einsum(
            "ij,ij->i", unit_vectors(questions), unit_vectors(sentences)
        )
        logits = np.exp(self.head[-2]) * cosines
        logits += sentences @ self.head[:-2] + self.head[-1]
        return np.split(logits, np.cumsum(lengths)[:-1])


def _means(
    states: Floats, vector_of_token: NDArray[np.int64], n_vectors: int
) -> Floats:
    """The mean state of each vector's tokens, (vectors, hidden_size)."""
    inside = vector_of_token >= 0
    sums = np.zeros((n_vectors, states.shape[1]), np.float32)
    np.add.at(sums, vector_of_token[inside], states[inside])
    counts = np.bincount(vector_of_token[inside], minlength=n_vectors)
    return np.asarray(sums / np.maximum(counts, 1)[:, None], np.float32)
