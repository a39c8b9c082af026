"""A cross-reader that computes in torch."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import normalize

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader


class CrossReader(SentenceCrossReader):
    """A `SentenceCrossReader` that computes in torch, on any device.

    Parameters
    ----------
    model : Bert
        The encoder's layers, trained further.
    tokenizer : Tokenizer
        The encoder's tokenizer.
    head : Tensor (hidden_size + 2,)
        The weights of the sentence's vector, the logarithm of the scale, and the bias.
    """

    def __init__(self, model: Bert, tokenizer: Tokenizer, head: torch.Tensor) -> None:
        super().__init__(model.shape, tokenizer)
        self.model = model
        self.head = head

    @torch.inference_mode()
    def window_logits(
        self, question: list[int], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[NDArray[np.float32]]:
        """Return the logits, (sentences,), of each window."""
        logits = self.forward([question] * len(windows), windows)
        return [of_window.cpu().numpy() for of_window in logits]

    def forward(
        self, questions: Sequence[list[int]], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[torch.Tensor]:
        """Return the logits, (sentences,), of each window.

        Parameters
        ----------
        questions : sequence of token ids
            The question of each window.
        windows : sequence of sequences of token ids
            The sentences of each window.
        """
        rows, second_begins, vector_of_token, n_vectors = self.laid_out(
            questions, windows
        )
        states = self.model.forward(rows, second_begins).float()  # (tokens, hidden)
        means = _means(states, vector_of_token, n_vectors)  # (vectors, hidden_size)
        lengths = [len(sentences) for sentences in windows]
        return torch.split(self._head_logits(means, lengths), lengths)

    def _head_logits(self, means: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Logits of all windows' sentences, (sentences,), from the vectors' means."""
        window_of_sentence = torch.repeat_interleave(
            torch.tensor(lengths, device=means.device)
        )
        questions = means[window_of_sentence]  # (sentences, hidden_size)
        sentences = means[len(lengths) :]  # (sentences, hidden_size)
        cosines = (normalize(questions, dim=1) * normalize(sentences, dim=1)).sum(1)
        linear = sentences @ self.head[:-2]
        return self.head[-2].exp() * cosines + linear + self.head[-1]


def _means(
    states: torch.Tensor, vector_of_token: Sequence[int], n_vectors: int
) -> torch.Tensor:
    """The mean state of each vector's tokens, (vectors, hidden_size)."""
    vector_numbers = torch.tensor(vector_of_token, device=states.device)
    inside = vector_numbers >= 0
    sums = states.new_zeros(n_vectors, states.shape[1]).index_add(
        0, vector_numbers[inside], states[inside]
    )
    counts = torch.bincount(vector_numbers[inside], minlength=n_vectors)
    return sums / counts.clamp(min=1)[:, None]
