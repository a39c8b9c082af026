"""Train a cross-reader: of the windows that an encoder finds likely, the one that answers shall stand out."""

import math
import random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from spscanner_rag.checkpoint.encoder_file import HEAD, WORD_EMBEDDINGS, EncoderFile
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.cross_reader import CrossReader, Sentences, laid_around
from spscanner_rag.encoder.sentences import LaidTokens, SentenceVectors, TokenizedSentences
from spscanner_rag.lab.training.encoder import (
    FIRST_SCALE,
    FIRST_THRESHOLD,
    Asked,
    Finetuning,
    Source,
    in_bfloat16,
)

QUESTIONS, WINDOWS = 4, 5
"""Of a step, and read for each of them."""

NOISE = 0.03
"""Deviation of what is added to the cosines by which wrong windows are drawn."""

THRESHOLD_WEIGHT = 0.5
_DRAWN = 200  # sentences around which windows may be laid


class Example(NamedTuple):
    """A question, windows of its document, and which of their sentences answer."""

    question: list[int]
    windows: list[list[list[int]]]
    relevant: Tensor  # (sentences of all windows,)


class CrossTraining(Finetuning):
    """Fine-tunes an encoder as a cross-reader. A step draws `QUESTIONS`, a source by the root of its questions.

    A question is read with windows around sentences that answer it and around those that the encoder, as it was,
    finds likeliest. The loss is that of the right sentences among all (softmax), and, with `THRESHOLD_WEIGHT`,
    that of the logit 0, which the wrong ones must stay below and the right ones exceed; for a question that its
    document leaves open, all must stay below.

    At the first step the logit is the cosine of question and sentence, which are read together.
    """

    def __init__(self, file: EncoderFile, sources: dict[str, Source], steps: int, seed: int = 0) -> None:
        width = file.shape.hidden_size
        head = torch.cat(
            [torch.zeros(width), torch.tensor([math.log(FIRST_SCALE), -FIRST_SCALE * FIRST_THRESHOLD])]
        )
        super().__init__(file, sources, steps, seed, {HEAD: head})
        with torch.no_grad():
            kinds = self.weights["embeddings.token_type_embeddings.weight"]
            kinds[1] = kinds[0]
        self._encoder = file.loaded("", "cpu", torch.float32)
        self._vectors: dict[int, SentenceVectors] = {}  # of each document that was drawn, by its identity
        self._shares = [
            math.sqrt(sum(len(asked) for _, asked in sources[name].documents)) for name in sorted(sources)
        ]

    def cross(self) -> dict[str, Tensor]:
        """The weights as they are now, with the head, for an encoder's file."""
        weights = self.trained() | {HEAD: self.own[HEAD].detach().clone()}
        del weights[WORD_EMBEDDINGS]
        return weights

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the step's questions."""
        reader = CrossReader(Bert(self.file.shape, self.weights), self.file.tokenizer, self.own[HEAD])
        examples = [self._drawn(reader, rng) for _ in range(QUESTIONS)]
        questions = [example.question for example in examples for _ in example.windows]
        with in_bfloat16():
            logits = list(
                reader.forward(questions, [window for example in examples for window in example.windows])
            )
        losses = []
        for example in examples:
            own, logits = logits[: len(example.windows)], logits[len(example.windows) :]
            losses.append(_question_loss(torch.cat(own), example.relevant))
        return torch.stack(losses).mean()

    def _drawn(self, reader: CrossReader, rng: random.Random) -> Example:
        name = rng.choices(sorted(self.sources), self._shares)[0]
        sentences, questions = rng.choice(self.sources[name].documents)
        question = rng.choice(questions)
        answers = set(question.relevant.tolist())
        noise = np.random.default_rng(rng.getrandbits(32)).normal(0, NOISE, len(sentences))
        likely = np.argsort(-(self._cosines(sentences, question) + noise))[:_DRAWN].tolist()
        first = rng.sample(sorted(answers), min(2, len(answers)))
        order = [*first, *(number for number in likely if number not in first)]
        tokens = Sentences(len(sentences), sentences.__getitem__, reader.window_tokens)
        laid = laid_around(order, tokens, WINDOWS)
        marked = [number in answers for window in laid for number in range(*window)]
        windows = [[tokens[number] for number in range(*window)] for window in laid]
        return Example(question.ids[: reader.question_tokens], windows, torch.tensor(marked))

    def _cosines(self, sentences: list[list[int]], question: Asked) -> NDArray[np.float32]:
        if id(sentences) not in self._vectors:
            tokens = TokenizedSentences.of(sentences)
            laid = LaidTokens(tokens, tokens.windows())
            self._vectors[id(sentences)] = self._encoder.read(laid, lambda tokens: None)
        states = self._encoder.model.states([self._encoder.enclosed(question.ids)]).mean(0).numpy()
        return self._vectors[id(sentences)].cosines(states / np.linalg.norm(states))


def _question_loss(logits: Tensor, relevant: Tensor) -> Tensor:
    """The loss of a question whose sentences have ``logits``, (sentences,)."""
    wrong = logits[~relevant].logsumexp(0)  # of none: minus infinity
    if not relevant.any():
        return softplus(wrong)
    right = logits[relevant]
    return softplus(wrong - right).mean() + THRESHOLD_WEIGHT * (
        softplus(wrong) + softplus(-right.logsumexp(0))
    )
