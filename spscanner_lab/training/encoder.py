"""Train an encoder on questions, and a cross-reader.

A cross-reader reads a question together with sentences.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import normalize, softplus

from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.loop import Trainer
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.checkpoint.encoder_file import HEAD, WORD_EMBEDDINGS, EncoderFile
from spscanner_rag.encoder.bert import Bert, restored
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.cross_windows import SentenceTokens, windows_around
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.encoder.token_windows import WINDOW_TOKENS, TokenizedSentences
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.segmentation import SentenceSegmenter

LEARNING_RATE = 5e-5
FIRST_SCALE = 20.0
FIRST_THRESHOLD = 0.5
# of the sentences around evidence among which a question must find its own
STRETCH_TOKENS = 2000
MOST_QUESTIONS = 10  # asked of one stretch
# sentences; a question with more is left out, since it looks for none of them alone
MOST_EVIDENCE = 60
ENCODER_THRESHOLD_WEIGHT = 0.2
CROSS_THRESHOLD_WEIGHT = 0.5
# questions in a step of the cross-reader, and windows read for each
QUESTIONS = 4
WINDOWS = 5
NOISE = 0.03  # standard deviation of the noise on the cosines that choose wrong windows
# the gradient of the fused attention takes four times as long on a CPU
PLAIN = SDPBackend.MATH
_DRAWN = 200  # sentences around which windows may be laid


class Asked(NamedTuple):
    """A question and the sentences of its document that answer it.

    There are none if the document leaves the question open.
    """

    ids: list[int]
    relevant: NDArray[np.int64]


# of a document or a part of it: sentences as token ids; questions
Read = tuple[list[list[int]], list[Asked]]
Source = list[Read]


def stretch_of(source: Source, rng: random.Random) -> Read:
    """Draw a stretch of sentences around one that answers a question.

    First a document is drawn, then one of its questions. The stretch comes with
    questions that it answers, and perhaps one that the document leaves open.
    """
    sentences, questions = rng.choice(source)
    answered = [question for question in questions if len(question.relevant)]
    chosen = rng.choice(answered)
    first = int(rng.choice(chosen.relevant.tolist()))
    stop = first + 1
    tokens = len(sentences[first])
    before = rng.random()
    while tokens < STRETCH_TOKENS and (first or stop < len(sentences)):
        if first and (stop == len(sentences) or rng.random() < before):
            first -= 1
            tokens += len(sentences[first])
        else:
            tokens += len(sentences[stop])
            stop += 1
    inside = [
        Asked(ids, relevant[(relevant >= first) & (relevant < stop)] - first)
        for ids, relevant in rng.sample(answered, len(answered))
        if ((relevant >= first) & (relevant < stop)).any()
    ]
    place = next((i for i, asked in enumerate(inside) if asked.ids == chosen.ids), 0)
    inside.insert(0, inside.pop(place))
    left_open = [question for question in questions if not len(question.relevant)]
    whole = stop - first == len(sentences)
    some = left_open[:1] if whole or rng.random() < 0.5 else []
    return sentences[first:stop], inside[:MOST_QUESTIONS] + some


def read_sources(
    documents: Iterable[Document],
    encoder: TokenEncoder,
    most_documents: int,
    seed: int = 0,
) -> tuple[dict[str, Source], list[Document]]:
    """Tokenize documents by source, and set a tenth of them aside.

    The documents that `is_held_out` selects are set aside, untokenized. At most
    ``most_documents`` of each source are kept, drawn by ``seed``. Sources without a
    question that a few sentences answer are left out; ``ValueError`` if none is left.
    """
    by_source: dict[str, list[Document]] = {}
    for document in documents:
        by_source.setdefault(document.source, []).append(document)
    sources: dict[str, Source] = {}
    aside: list[Document] = []
    for name, own in sorted(by_source.items()):
        random.Random(seed).shuffle(own)
        held_out = [document for document in own if is_held_out(document.doc_id)]
        aside += held_out[: max(1, most_documents // 10)]
        trained = [document for document in own if not is_held_out(document.doc_id)]
        read = [_read(document, encoder) for document in trained[:most_documents]]
        filled = [
            (ids, asked)
            for ids, asked in read
            if any(len(question.relevant) for question in asked)
        ]
        if filled:
            sources[name] = filled
    if not sources:
        raise ValueError(
            "got no question with evidence to train on; expected some in --data"
        )
    return sources, aside


def _read(document: Document, encoder: TokenEncoder) -> Read:
    units = SentenceSegmenter().segment(document.text)
    spans = Spans.of(units)
    asked = []
    for question in document.questions:
        relevant = np.flatnonzero(
            relevant_units(spans.starts, spans.ends, question.evidence)
        )
        is_open = not question.answerable or not question.evidence
        if is_open or (0 < len(relevant) <= MOST_EVIDENCE and not question.ambiguous):
            ids = encoder.question_ids(folded(question.text))
            asked.append(Asked(ids, relevant[:0] if is_open else relevant))
    return [encoder.ids(unit.model_text) for unit in fold_units(units)], asked


class Finetuning(nn.Module, ABC):
    """An encoder's weights and the objective of their `Trainer`.

    The weights start from the encoder's file. Word embeddings are frozen: they are half
    of the weights, and few words of a new document were trained on. ``own`` are further
    weights, trained at ten times the rate. ``seed`` and a step's number determine its
    draws.
    """

    splits = False

    def __init__(
        self,
        file: EncoderFile,
        sources: dict[str, Source],
        seed: int,
        own: dict[str, Tensor],
    ) -> None:
        super().__init__()
        compute_in_forks()
        self.file = file
        self.sources = sources
        self.seed = seed
        self.own = nn.ParameterDict(own)
        kept = restored(file.weights)
        self._held = nn.ParameterList(
            kept[name].float().clone() for name in file.shape.tensors()
        )
        self.weights[WORD_EMBEDDINGS].requires_grad_(False)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights by name."""
        return dict(zip(self.file.shape.tensors(), self._held, strict=True))

    @abstractmethod
    def loss(self, rng: random.Random) -> Tensor:
        """The loss of a step that draws with ``rng``."""

    def example(self, number: int, length: int) -> random.Random:
        """The random generator of all that a step draws."""
        return random.Random(f"{self.seed}:{number}")

    def tokens(self, example: random.Random) -> int:
        """0: tokens are not counted."""
        return 0

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[random.Random],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The loss of a step."""
        return map(self.loss, examples)

    def trainer(self, folder: Path, steps: int) -> Trainer:
        """The trainer of these weights, which resumes from a state in ``folder``."""
        recipe = Recipe(
            steps=steps,
            learning_rate=LEARNING_RATE,
            final_learning_rate=0.0,
            sequences_per_step=1,
            seed=self.seed,
        )
        inputs = {"sources": ", ".join(sorted(self.sources))}
        return Trainer(
            self, self, recipe, folder, inputs=inputs, fast=self.own.values()
        )

    def trained(self) -> dict[str, Tensor]:
        """A copy of the current weights."""
        return {name: weight.detach().clone() for name, weight in self.weights.items()}


def question_loss(
    scores: Tensor,
    right: Tensor,
    below: Tensor,
    threshold: Tensor | float,
    weight: float,
) -> Tensor:
    """The loss of a question from the scores of its sentences.

    ``scores`` and ``right``, the sentences that answer, are (sentences,). The softmax
    loss of the right ones among all, plus ``weight`` times a threshold loss: scores in
    ``below`` must stay below the threshold, and right ones exceed it. If none is right,
    only scores in ``below`` count.
    """
    under = softplus(scores[below].logsumexp(0) - threshold)
    if not right.any():
        return under
    ranking = softplus(scores[~right].logsumexp(0) - scores[right]).mean()
    return ranking + weight * (under + softplus(threshold - scores[right].logsumexp(0)))


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
        own = {
            "scale": torch.tensor(math.log(FIRST_SCALE)),
            "threshold": torch.tensor(FIRST_THRESHOLD),
        }
        super().__init__(file, sources, seed, own)
        self._enclosed = file.loaded("", "cpu", torch.float32).enclosed

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the questions of two stretches."""
        source = self.sources[rng.choice(sorted(self.sources))]
        stretches = [stretch_of(source, rng) for _ in range(2)]
        bert = Bert(self.file.shape, self.weights)
        scale = self.own["scale"].exp()
        sentences = torch.cat(
            [self._vectors(bert, sentences, rng) for sentences, _ in stretches]
        )
        first = 0
        losses = list[Tensor]()
        for read, questions in stretches:
            stop = first + len(read)
            own = torch.zeros(len(sentences), dtype=torch.bool)
            own[first:stop] = True
            states = self._states(bert, [question.ids for question in questions])
            asked = normalize(
                torch.stack([own_states.mean(0) for own_states in states]), dim=1
            )
            for question, scores in zip(
                questions, scale * asked @ sentences.T, strict=True
            ):
                right = torch.zeros_like(own)
                right[torch.from_numpy(question.relevant) + first] = True
                below = ~own if right.any() else own
                threshold = self.own["threshold"] * scale
                losses.append(
                    question_loss(
                        scores, right, below, threshold, ENCODER_THRESHOLD_WEIGHT
                    )
                )
            first = stop
        return torch.stack(losses).mean()

    def _vectors(
        self, bert: Bert, sentences: Sequence[list[int]], rng: random.Random
    ) -> Tensor:
        """Unit vectors of sentences, (sentences, width).

        Each sentence is read in one window. The first window is of random length.
        """
        tokens = TokenizedSentences.of([ids[:WINDOW_TOKENS] for ids in sentences])
        windows = [(0, 0)]
        most = rng.randint(WINDOW_TOKENS // 5, WINDOW_TOKENS)
        for stop in tokens.ends.tolist():
            if stop - windows[-1][0] > most and windows[-1][1] > windows[-1][0]:
                windows.append((windows[-1][1], stop))
                most = WINDOW_TOKENS
            else:
                windows[-1] = (windows[-1][0], stop)
        states = []
        for some in range(0, len(windows), 8):
            read = self._states(
                bert, [tokens.ids[slice(*w)].tolist() for w in windows[some : some + 8]]
            )
            states += [own[1:-1] for own in read]
        owner = torch.from_numpy(
            np.concatenate([tokens.sentence_of(*window) for window in windows])
        )
        sums = torch.zeros(len(sentences), bert.shape.hidden_size).index_add(
            0, owner, torch.cat(states)
        )
        return normalize(sums, dim=1)  # normalized, a sum is as good as a mean

    def _states(self, bert: Bert, rows: Sequence[Sequence[int]]) -> Sequence[Tensor]:
        ids = [self._enclosed(row) for row in rows]
        with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(PLAIN):
            return torch.split(bert.forward(ids).float(), [len(own) for own in ids])


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
        ends = [math.log(FIRST_SCALE), -FIRST_SCALE * FIRST_THRESHOLD]
        head = torch.tensor([0.0] * file.shape.hidden_size + ends)
        super().__init__(file, sources, seed, {HEAD: head})
        with torch.no_grad():
            kinds = self.weights["embeddings.token_type_embeddings.weight"]
            kinds[1] = kinds[0]
        self._encoder = file.loaded("", "cpu", torch.float32)
        # of each document drawn, by its identity
        self._vectors: dict[int, SentenceVectors] = {}
        self._shares = [
            math.sqrt(sum(len(asked) for _, asked in sources[name]))
            for name in sorted(sources)
        ]

    def cross(self) -> dict[str, Tensor]:
        """The current weights, with the head, for an encoder's file."""
        weights = self.trained() | {HEAD: self.own[HEAD].detach().clone()}
        del weights[WORD_EMBEDDINGS]
        return weights

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the step's questions."""
        reader = CrossReader(
            Bert(self.file.shape, self.weights), self.file.tokenizer, self.own[HEAD]
        )
        drawn = [self._drawn(reader, rng) for _ in range(QUESTIONS)]
        questions = [question for question, windows, _ in drawn for _ in windows]
        windows = [window for _, windows, _ in drawn for window in windows]
        with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(PLAIN):
            logits = list(reader.forward(questions, windows))
        losses = []
        for _, own_windows, right in drawn:
            own = logits[: len(own_windows)]
            logits = logits[len(own_windows) :]
            losses.append(
                question_loss(
                    torch.cat(own), right, ~right, 0.0, CROSS_THRESHOLD_WEIGHT
                )
            )
        return torch.stack(losses).mean()

    def _drawn(
        self, reader: CrossReader, rng: random.Random
    ) -> tuple[list[int], list[list[list[int]]], Tensor]:
        """A question, windows of its document, and which sentences in them answer."""
        name = rng.choices(sorted(self.sources), self._shares)[0]
        sentences, questions = rng.choice(self.sources[name])
        question = rng.choice(questions)
        answers = set(question.relevant.tolist())
        noise = np.random.default_rng(rng.getrandbits(32)).normal(
            0, NOISE, len(sentences)
        )
        if id(sentences) not in self._vectors:
            self._vectors[id(sentences)] = self._encoder.vectors_of_tokens(
                TokenizedSentences.of(sentences)
            )
        states = (
            self._encoder.model.states([self._encoder.enclosed(question.ids)])
            .mean(0)
            .numpy()
        )
        cosines = self._vectors[id(sentences)].cosines(states / np.linalg.norm(states))
        likely = np.argsort(-(cosines + noise))[:_DRAWN].tolist()
        first = rng.sample(sorted(answers), min(2, len(answers)))
        order = [*first, *(number for number in likely if number not in first)]
        tokens = SentenceTokens(
            len(sentences), sentences.__getitem__, reader.window_tokens
        )
        laid = windows_around(order, tokens, WINDOWS)
        marked = [number in answers for window in laid for number in range(*window)]
        windows = [[tokens[number] for number in range(*window)] for window in laid]
        return question.ids[: reader.question_tokens], windows, torch.tensor(marked)
