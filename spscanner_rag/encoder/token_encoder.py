"""Vectors of sentences in their context, from the states of their tokens in torch."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.sentence_encoder import Step
from spscanner_rag.encoder.token_windows import TokenizedSentences
from spscanner_rag.encoder.window_encoder import (
    TOKENS_AT_ONCE_ON_CPU,
    WindowEncoder,
    in_batches,
)

TOKENS_AT_ONCE = 4096  # in one forward pass of the encoder, to bound its memory


class TokenEncoder(WindowEncoder[Bert]):
    """A `WindowEncoder` that computes in torch, on any device.

    Parameters
    ----------
    model : Bert
        The encoder.
    tokenizer, digest, prefix, passage_prefix, alone, first_token
        As for `WindowEncoder`.
    """

    def question_state(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the pooled state of a window with a question: (width,)."""
        states = self.model.states([ids]).float()
        pooled = states[0] if self.first_token else states.mean(0)
        vector: NDArray[np.float32] = pooled.cpu().numpy()
        return vector

    def means_in_windows(
        self,
        sentences: TokenizedSentences,
        windows: Sequence[tuple[int, int]],
        after_step: Step,
    ) -> NDArray[np.float32]:
        """Return the mean state of each sentence's tokens in windows."""
        device = self.model.device
        n_sentences = len(sentences.ends)
        sums = torch.zeros(n_sentences, self.shape.hidden_size, device=device)
        counts = torch.zeros(n_sentences, device=device)
        most_tokens = TOKENS_AT_ONCE
        if device.type == "cpu":
            most_tokens = TOKENS_AT_ONCE_ON_CPU
        for batch in in_batches(windows, most_tokens):
            rows, inside, sentence_numbers = self.batch_of(sentences, batch)
            states = self.model.states(rows).float()  # (tokens, hidden_size)
            states = states[torch.from_numpy(inside).to(device)]
            sentence_of_token = torch.from_numpy(sentence_numbers).to(device)
            sums.index_add_(0, sentence_of_token, states)
            ones = torch.ones(len(sentence_of_token), device=device)
            counts.index_add_(0, sentence_of_token, ones)
            after_step(len(sentence_of_token))
        means: NDArray[np.float32] = (sums / counts.clamp(min=1)[:, None]).cpu().numpy()
        return means
