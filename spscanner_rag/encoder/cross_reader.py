"""Reads the likeliest sentences once more, in windows together with the question."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import normalize

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.cross_windows import (
    WINDOW_TOKENS,
    SentenceRange,
    SentenceTokens,
    windows_around,
)
from spscanner_rag.encoder.sentence_encoder import Step, ignore
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.encoding import encode

QUESTION_TOKENS: Final = 64
"""Maximum number of tokens read of a question, at its end, where people ask."""

LIKELY: Final = 64
"""Maximum number of sentences that get a window."""

REACH: Final = 1.5
"""How far below the best of its text a score may be; on 919 questions, reading more
changed no ranking."""

HOPELESS: Final = -4.0
"""Nothing with a score below this is read, as in texts of a collection that are
about something else."""

_CHARACTERS: Final = 16 * WINDOW_TOKENS  # that are tokenized of a sentence at most
_SPECIAL_TOKENS = 3


class CrossReader:
    """A cross-encoder that gives a logit to every sentence of a window.

    It reads ``[CLS] question [SEP] sentences [SEP]``, so that every word is read
    together with the question (Nogueira and Cho 2019). A sentence's vector is the mean
    of its tokens' states, the question's vector that of the tokens before them; the
    logit is their cosine times a scale, plus a linear function of the sentence's
    vector.

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
        self.model = model
        self.tokenizer = tokenizer
        self.head = head
        longest = model.shape.max_position_embeddings - _SPECIAL_TOKENS
        self.question_tokens = min(QUESTION_TOKENS, longest // 3)
        self.window_tokens = min(WINDOW_TOKENS, longest - self.question_tokens)
        self._begin_id = tokenizer.token_to_id("[CLS]") or 0
        self._between_id = tokenizer.token_to_id("[SEP]") or 0

    @torch.inference_mode()
    def logits(
        self,
        query: str,
        sentences: Sequence[str],
        scores: NDArray[np.float32],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> NDArray[np.float32]:
        """Return the logits of a text's sentences, (sentences,).

        A sentence that is not read gets minus infinity. Windows are laid around the
        sentences with the best ``scores``, within `REACH` of the best and not below
        `HOPELESS`, until there are `WINDOWS`. A sentence in several windows takes its
        logit from the one in which it is farthest from the edge.

        Parameters
        ----------
        query : str
            The question.
        sentences : sequence of str
            All sentences of the text.
        scores : array (sentences,)
            Logits that the scanner's weights calibrate.
        before, after_step : callable, optional
            Called with the number of tokens that are read.
        """
        compute_in_forks()
        tokens = SentenceTokens(
            len(sentences),
            lambda number: self._ids(sentences[number]),
            self.window_tokens,
        )
        windows = windows_around(_likeliest(scores), tokens)
        windows.sort(key=tokens.count_in)
        if not windows:
            return np.full(len(sentences), -np.inf, np.float32)
        n_tokens = sum(map(tokens.count_in, windows))
        before(n_tokens)
        question = self.question_ids(query)
        window_tokens = []
        for window in windows:
            window_tokens.append([tokens[number] for number in range(*window)])
        logits_of_windows = self.forward([question] * len(windows), window_tokens)
        logits = _deepest(windows, logits_of_windows, len(sentences))
        after_step(n_tokens)
        return logits

    def question_ids(self, query: str) -> list[int]:
        """Return the token ids that are read of a question: those at its end."""
        ids: list[int] = encode(self.tokenizer, query.strip()).ids
        return ids[-self.question_tokens :]

    def _ids(self, sentence: str) -> list[int]:
        ids: list[int] = encode(self.tokenizer, sentence.strip()[:_CHARACTERS]).ids
        return ids

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
        rows: list[list[int]] = []
        second_begins: list[int] = []
        # The vector that each token belongs to: the first vectors are the questions'.
        vector_of_token: list[int] = []
        n_vectors = len(windows)
        for number, question in enumerate(questions):
            row = [self._begin_id, *question, self._between_id]
            second_begins.append(len(row))
            vector_of_token += [number] * len(row)
            for ids in windows[number]:
                row += ids
                vector_of_token += [n_vectors] * len(ids)
                n_vectors += 1
            row.append(self._between_id)
            vector_of_token.append(-1)
            rows.append(row)
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


def _likeliest(scores: NDArray[np.float32]) -> list[int]:
    """The numbers of the sentences to read, the best first."""
    order = np.argsort(-scores, kind="stable")[:LIKELY]
    lowest = max(scores.max(initial=HOPELESS) - REACH, HOPELESS)
    likeliest: list[int] = order[scores[order] >= lowest].tolist()
    return likeliest


def _deepest(
    windows: Sequence[SentenceRange],
    logits_of_windows: Iterable[torch.Tensor],
    n_sentences: int,
) -> NDArray[np.float32]:
    """Each sentence's logit from the window in which it is farthest from the edge."""
    logits = np.full(n_sentences, -np.inf, np.float32)
    depths = np.full(n_sentences, -1)
    for window, window_logits in zip(windows, logits_of_windows, strict=True):
        numbers = range(*window)
        for number, logit in zip(numbers, window_logits.tolist(), strict=True):
            depth = window.depth(number, n_sentences)
            if depth > depths[number]:
                logits[number] = logit
                depths[number] = depth
    return logits


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
