"""Vectors of sentences in their context, from the states of their tokens in numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.numpy_bert import NumpyBert
from spscanner_rag.encoder.sentence_encoder import Step
from spscanner_rag.encoder.token_windows import TokenizedSentences
from spscanner_rag.encoder.window_encoder import (
    TOKENS_AT_ONCE_ON_CPU,
    WindowEncoder,
    in_batches,
)


class NumpyTokenEncoder(WindowEncoder[NumpyBert]):
    """A `WindowEncoder` that computes in numpy's float32, without torch.

    Parameters
    ----------
    model : NumpyBert
        The encoder.
    tokenizer, digest, prefix, passage_prefix, alone, first_token
        As for `WindowEncoder`.
    """

    def question_state(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the pooled state of a window with a question: (width,)."""
        states = self.model.states([ids])
        pooled: NDArray[np.float32] = states[0]
        if not self.first_token:
            pooled = states.mean(axis=0)
        return pooled

    def means_in_windows(
        self,
        sentences: TokenizedSentences,
        windows: Sequence[tuple[int, int]],
        after_step: Step,
    ) -> NDArray[np.float32]:
        """Return the mean state of each sentence's tokens in windows."""
        n_sentences = len(sentences.ends)
        sums = np.zeros((n_sentences, self.shape.hidden_size), np.float32)
        counts = np.zeros(n_sentences, np.float32)
        for batch in in_batches(windows, TOKENS_AT_ONCE_ON_CPU):
            rows, inside, sentence_numbers = self.batch_of(sentences, batch)
            states = self.model.states(rows)[inside]  # (tokens, hidden_size)
            np.add.at(sums, sentence_numbers, states)
            np.add.at(counts, sentence_numbers, np.float32(1))
            after_step(len(sentence_numbers))
        return np.asarray(sums / np.maximum(counts, 1)[:, None], np.float32)
