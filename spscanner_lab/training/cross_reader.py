"""Train a cross-reader, which reads a question together with sentences."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import softplus

from spscanner_lab.training.encoder_data import Source, TokenizedQuestion
from spscanner_lab.training.finetuning import (
    FIRST_SCALE,
    FIRST_THRESHOLD,
    PLAIN_ATTENTION,
    Finetuning,
    question_loss,
)
from spscanner_rag.checkpoint.encoder_content import HEAD
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import Bert, restored
from spscanner_rag.encoder.bert_shape import WORD_EMBEDDINGS
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.cross_windows import SentenceTokens, windows_around
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.token_windows import TokenizedSentences

THRESHOLD_WEIGHT = 0.5
# questions in a step, and windows of the document of each
QUESTIONS = 4
WINDOWS = 5
# of the questions that name somebody, how many are followed by a near miss
NEAR_MISS_SHARE = 0.7
NOISE = 0.03  # standard deviation of the noise on the cosines that choose wrong windows

_LIKELY_SENTENCES = 200  # around which windows may be laid


class CrossExample(NamedTuple):
    """A question, windows of its document, and which sentences in them answer."""

    question: list[int]
    windows: list[list[list[int]]]
    right: Tensor  # (sentences of all windows,)
    # whether it asks the example before it of somebody else
    is_near_miss: bool = False


class CrossTraining(Finetuning):
    """Fine-tunes an encoder as a cross-reader.

    A step has `QUESTIONS` questions, from sources by the root of their sizes. A
    question is read with windows around sentences that answer it and around those that
    the unchanged encoder finds likeliest. The loss is `question_loss` with the logit 0
    as its threshold. At the first step the logit is a scaled and shifted cosine of
    question and sentence, which are read together.
    """

    def __init__(
        self, file: EncoderFile, sources: dict[str, Source], seed: int = 0
    ) -> None:
        scale_and_shift = [math.log(FIRST_SCALE), -FIRST_SCALE * FIRST_THRESHOLD]
        head = torch.tensor([0.0] * file.shape.hidden_size + scale_and_shift)
        super().__init__(file, sources, seed, {HEAD: head})
        with torch.no_grad():
            self._start(file)
        self._encoder = file.loaded("", "cpu", torch.float32)
        # of each document drawn, by the identity of its sentences
        self._vectors: dict[int, SentenceVectors] = {}
        self._source_weights: list[float] = []
        for name in sorted(sources):
            questions = sum(len(document.questions) for document in sources[name])
            self._source_weights.append(math.sqrt(questions))

    def _start(self, file: EncoderFile) -> None:
        """Start from the file's cross-reader, or from its encoder if it has none."""
        if file.cross is None:
            kinds = self.weights["embeddings.token_type_embeddings.weight"]
            kinds[1] = kinds[0]
            return
        trained = restored(file.cross)
        self.fast_weights[HEAD].copy_(trained.pop(HEAD).float())
        for name, weight in trained.items():
            self.weights[name].copy_(weight.float())

    def cross(self) -> dict[str, Tensor]:
        """The current weights, with the head, for an encoder's file."""
        weights = self.trained() | {HEAD: self.fast_weights[HEAD].detach().clone()}
        del weights[WORD_EMBEDDINGS]
        return weights

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the step's questions."""
        bert = Bert(self.file.shape, self.weights)
        reader = CrossReader(bert, self.file.tokenizer, self.fast_weights[HEAD])
        examples: list[CrossExample] = []
        for _ in range(QUESTIONS):
            examples += self._draw_examples(reader, rng)
        questions: list[list[int]] = []
        windows: list[list[list[int]]] = []
        for example in examples:
            questions += [example.question] * len(example.windows)
            windows += example.windows
        with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(PLAIN_ATTENTION):
            logits_by_window = list(reader.forward(questions, windows))
        losses = []
        first = 0
        answer_score = torch.zeros(())
        for example in examples:
            stop = first + len(example.windows)
            logits = torch.cat(logits_by_window[first:stop])
            right = example.right
            losses.append(question_loss(logits, right, ~right, 0.0, THRESHOLD_WEIGHT))
            if example.is_near_miss:
                losses.append(softplus(logits.logsumexp(0) - answer_score))
            elif right.any():
                answer_score = logits[right].logsumexp(0)
            first = stop
        return torch.stack(losses).mean()

    def _draw_examples(
        self, reader: CrossReader, rng: random.Random
    ) -> list[CrossExample]:
        """A question, and perhaps the same about another name of its document."""
        name = rng.choices(sorted(self.sources), self._source_weights)[0]
        document = rng.choice(self.sources[name])
        question = rng.choice(document.questions)
        example = self._example(question, document.sentences, reader, rng)
        if not question.near_misses or rng.random() >= NEAR_MISS_SHARE:
            return [example]
        near_miss = rng.choice(question.near_misses)[-reader.question_tokens :]
        nothing = torch.zeros_like(example.right)
        return [
            example,
            example._replace(question=near_miss, right=nothing, is_near_miss=True),
        ]

    def _example(
        self,
        question: TokenizedQuestion,
        sentences: list[list[int]],
        reader: CrossReader,
        rng: random.Random,
    ) -> CrossExample:
        """A question with windows of its document."""
        noise_rng = np.random.default_rng(rng.getrandbits(32))
        noise = noise_rng.normal(0, NOISE, len(sentences))
        noisy_cosines = self._cosines(question, sentences) + noise
        likely = np.argsort(-noisy_cosines)[:_LIKELY_SENTENCES].tolist()
        answers = set(question.relevant.tolist())
        order = rng.sample(sorted(answers), min(2, len(answers)))
        chosen_answers = frozenset(order)
        for number in likely:
            if number not in chosen_answers:
                order.append(number)
        tokens = SentenceTokens(
            len(sentences), sentences.__getitem__, reader.window_tokens
        )
        windows = []
        is_answer = []
        for window in windows_around(order, tokens, WINDOWS):
            window_sentences = []
            for number in range(*window):
                window_sentences.append(tokens[number])
                is_answer.append(number in answers)
            windows.append(window_sentences)
        question_ids = question.ids[-reader.question_tokens :]
        return CrossExample(question_ids, windows, torch.tensor(is_answer))

    def _cosines(
        self, question: TokenizedQuestion, sentences: Sequence[list[int]]
    ) -> NDArray[np.float32]:
        """Cosines of the unchanged encoder's vectors, (sentences,)."""
        vectors = self._vectors.get(id(sentences))
        if vectors is None:
            tokens = TokenizedSentences.of(sentences)
            vectors = self._encoder.vectors_of_tokens(tokens)
            self._vectors[id(sentences)] = vectors
        enclosed_question = self._encoder.enclosed(question.ids)
        states = self._encoder.model.states([enclosed_question])
        question_vector = states.mean(0).numpy()
        return vectors.cosines(question_vector / np.linalg.norm(question_vector))
