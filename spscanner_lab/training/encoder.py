"""Train an encoder on questions."""

import math
import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import normalize

from spscanner_lab.training.encoder_data import Source, TokenizedDocument, stretch_of
from spscanner_lab.training.finetuning import (
    FIRST_SCALE,
    FIRST_THRESHOLD,
    PLAIN_ATTENTION,
    Finetuning,
    question_loss,
)
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.token_windows import WINDOW_TOKENS, TokenizedSentences

THRESHOLD_WEIGHT = 0.2

_WINDOWS_AT_ONCE = 8


class EncoderTraining(Finetuning):
    """Fine-tunes an encoder.

    Every step draws two stretches from one source, each source equally often.

    The loss of a question is `question_loss` over scaled cosines with the sentences of
    both stretches, as in contrastive training. Sentences of the other stretch must stay
    below the threshold or, for a question that its document leaves open, those of its
    own stretch.
    """

    def __init__(
        self, file: EncoderFile, sources: dict[str, Source], seed: int = 0
    ) -> None:
        fast_weights = {
            "scale": torch.tensor(math.log(FIRST_SCALE)),
            "threshold": torch.tensor(FIRST_THRESHOLD),
        }
        super().__init__(file, sources, seed, fast_weights)
        self._enclosed = file.loaded("", "cpu", torch.float32).enclosed

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the questions of two stretches."""
        source = self.sources[rng.choice(sorted(self.sources))]
        stretches = [stretch_of(source, rng), stretch_of(source, rng)]
        bert = Bert(self.file.shape, self.weights)
        vectors_by_stretch = []
        for stretch in stretches:
            vectors_by_stretch.append(self._sentence_vectors(bert, stretch, rng))
        vectors = torch.cat(vectors_by_stretch)
        first = 0
        losses: list[Tensor] = []
        for stretch in stretches:
            losses += self._question_losses(bert, stretch, first, vectors)
            first += len(stretch.sentences)
        return torch.stack(losses).mean()

    def _question_losses(
        self, bert: Bert, stretch: TokenizedDocument, first: int, vectors: Tensor
    ) -> list[Tensor]:
        """The loss of each question of a stretch.

        ``vectors`` are those of all sentences, (sentences, width), and ``first`` is the
        number of the stretch's first sentence.
        """
        inside = torch.zeros(len(vectors), dtype=torch.bool)
        inside[first : first + len(stretch.sentences)] = True
        scale = self.fast_weights["scale"].exp()
        scores_by_question = scale * self._question_vectors(bert, stretch) @ vectors.T
        losses = []
        for question, scores in zip(stretch.questions, scores_by_question, strict=True):
            right = torch.zeros_like(inside)
            right[torch.from_numpy(question.relevant) + first] = True
            below = ~inside if right.any() else inside
            threshold = self.fast_weights["threshold"] * scale
            losses.append(
                question_loss(scores, right, below, threshold, THRESHOLD_WEIGHT)
            )
        return losses

    def _question_vectors(self, bert: Bert, stretch: TokenizedDocument) -> Tensor:
        """Unit vectors of a stretch's questions, (questions, width)."""
        states = self._states(bert, [question.ids for question in stretch.questions])
        means = [question_states.mean(0) for question_states in states]
        return normalize(torch.stack(means), dim=1)

    def _sentence_vectors(
        self, bert: Bert, stretch: TokenizedDocument, rng: random.Random
    ) -> Tensor:
        """Unit vectors of a stretch's sentences, (sentences, width).

        Each sentence is read in one window. The first window is of random length.
        """
        sentences = stretch.sentences
        tokens = TokenizedSentences.of([ids[:WINDOW_TOKENS] for ids in sentences])
        windows = draw_windows(tokens.ends.tolist(), rng)
        states: list[Tensor] = []
        window_ids: list[list[int]] = []
        owners = []
        for start, stop in windows:
            window_ids.append(tokens.ids[start:stop].tolist())
            owners.append(tokens.sentence_of(start, stop))
        for number in range(0, len(windows), _WINDOWS_AT_ONCE):
            some_ids = window_ids[number : number + _WINDOWS_AT_ONCE]
            for window_states in self._states(bert, some_ids):
                states.append(window_states[1:-1])
        owner = torch.from_numpy(np.concatenate(owners))
        zeros = torch.zeros(len(sentences), bert.shape.hidden_size)
        sums = zeros.index_add(0, owner, torch.cat(states))
        return normalize(sums, dim=1)  # normalized, a sum is as good as a mean

    def _states(self, bert: Bert, rows: Sequence[Sequence[int]]) -> Sequence[Tensor]:
        """The states of each row with the tokens that enclose it, (tokens, width)."""
        ids = list(map(self._enclosed, rows))
        with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(PLAIN_ATTENTION):
            states = bert.forward(ids).float()
            return torch.split(states, list(map(len, ids)))


def draw_windows(
    sentence_ends: Sequence[int], rng: random.Random
) -> list[tuple[int, int]]:
    """Start and stop of windows of whole sentences, the first of random length."""
    max_tokens = rng.randint(WINDOW_TOKENS // 5, WINDOW_TOKENS)
    windows = []
    start = 0
    stop = 0
    for sentence_end in sentence_ends:
        if sentence_end - start > max_tokens and stop > start:
            windows.append((start, stop))
            start = stop
            max_tokens = WINDOW_TOKENS
        stop = sentence_end
    windows.append((start, stop))
    return windows
