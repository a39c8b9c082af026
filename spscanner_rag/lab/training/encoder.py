"""Train an encoder on questions: a sentence read in its context shall lie near the questions that it answers."""

import json
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import normalize, softplus

from spscanner_rag.checkpoint.encoder_file import WORD_EMBEDDINGS, EncoderFile
from spscanner_rag.encoder.bert import Bert, restored
from spscanner_rag.encoder.sentences import WINDOW_TOKENS, TokenEncoder, TokenizedSentences
from spscanner_rag.lab.evidence.questions import Document, is_held_out
from spscanner_rag.lab.training.state_file import read_tensors, write_tensors
from spscanner_rag.mamba2.backends import compute_in_forks
from spscanner_rag.mamba2.reader import keep_freed_memory
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.segmentation import SentenceSegmenter

LEARNING_RATE, WARMUP_STEPS, WEIGHT_DECAY, LARGEST_GRADIENT = 5e-5, 40, 0.01, 1.0
FIRST_SCALE, FIRST_THRESHOLD = 20.0, 0.5
STRETCH_TOKENS = 2000
"""Tokens of the sentences of a document, around evidence, among which a question must find its own."""

MOST_QUESTIONS = 10
"""Asked of one stretch."""

MOST_EVIDENCE = 60
"""Sentences; of a question with more, no one sentence is what it looks for."""

THRESHOLD_WEIGHT = 0.2


Enclosed = Callable[[Sequence[int]], list[int]]


class Asked(NamedTuple):
    """A question and the sentences of its document that answer it; none for one that the document leaves open."""

    ids: list[int]
    relevant: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Source:
    """The documents of a source: each its sentences' token ids, and its questions."""

    documents: list[tuple[list[list[int]], list[Asked]]] = field(default_factory=list)


class Stretch(NamedTuple):
    """Neighbouring sentences of a document, and questions that they answer or leave open."""

    sentences: list[list[int]]
    questions: list[Asked]

    @classmethod
    def drawn(cls, source: Source, rng: random.Random) -> "Stretch":
        """Draw a document, one of its questions, and sentences around one that answers it."""
        sentences, questions = rng.choice(source.documents)
        answered = [question for question in questions if len(question.relevant)]
        chosen = rng.choice(answered)
        first = int(rng.choice(chosen.relevant.tolist()))
        stop, tokens, before = first + 1, len(sentences[first]), rng.random()
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
        return cls(sentences[first:stop], inside[:MOST_QUESTIONS] + some)


def read_sources(
    documents: Iterable[Document], encoder: TokenEncoder, most_documents: int, seed: int = 0
) -> tuple[dict[str, Source], list[Document]]:
    """Tokenize documents by source, and set the tenth of `is_held_out` aside, untokenized.

    At most ``most_documents`` of each source are kept, drawn by ``seed``. Sources without a question that a few
    sentences answer are left out; ``ValueError`` if none is left.
    """
    by_source: dict[str, list[Document]] = {}
    for document in documents:
        by_source.setdefault(document.source, []).append(document)
    sources: dict[str, Source] = {}
    aside: list[Document] = []
    for name, own in sorted(by_source.items()):
        random.Random(seed).shuffle(own)
        aside += [document for document in own if is_held_out(document.doc_id)][
            : max(1, most_documents // 10)
        ]
        trained = [document for document in own if not is_held_out(document.doc_id)][:most_documents]
        read = [_read(document, encoder) for document in trained]
        filled = [(ids, asked) for ids, asked in read if any(len(question.relevant) for question in asked)]
        if filled:
            sources[name] = Source(filled)
    if not sources:
        raise ValueError("got no question with evidence to train on; expected some in --data")
    return sources, aside


def _read(document: Document, encoder: TokenEncoder) -> tuple[list[list[int]], list[Asked]]:
    units = SentenceSegmenter().segment(document.text)
    spans, asked = Spans.of(units), []
    for question in document.questions:
        relevant = np.flatnonzero(relevant_units(spans.starts, spans.ends, question.evidence))
        is_open = not question.answerable or not question.evidence
        if is_open or (0 < len(relevant) <= MOST_EVIDENCE and not question.ambiguous):
            ids = encoder.question_ids(folded(question.text))
            asked.append(Asked(ids, relevant[:0] if is_open else relevant))
    return [encoder.ids(unit.model_text) for unit in fold_units(units)], asked


class Finetuning(ABC):
    """Trains weights of an encoder's shape, from what an encoder's file holds.

    The learning rate rises over `WARMUP_STEPS` and falls to 0 along a cosine. Word embeddings are frozen: they are
    half of the weights, and few words of a new document were trained on.

    ``seed``, with the number of a step, determines what it draws; ``own`` are further weights, trained at ten
    times the rate.
    """

    def __init__(
        self,
        file: EncoderFile,
        sources: dict[str, Source],
        steps: int,
        seed: int = 0,
        own: dict[str, Tensor] | None = None,
    ) -> None:
        compute_in_forks()
        keep_freed_memory()
        self.file, self.sources, self.steps, self.seed = file, sources, steps, seed
        self.step, self.losses, self.own = 0, list[float](), own or {}
        kept = restored(file.weights)
        self.weights = {name: kept[name].float().clone() for name in file.shape.tensors()}
        self._trained = [weight for name, weight in self.weights.items() if name != WORD_EMBEDDINGS]
        for weight in (*self._trained, *self.own.values()):
            weight.requires_grad_()
        others = {"params": list(self.own.values()), "weight_decay": 0.0, "times": 10}
        groups: list[dict[str, Any]] = [{"params": self._trained, "times": 1}, others]
        self.optimizer = torch.optim.AdamW(groups, LEARNING_RATE, (0.9, 0.99), weight_decay=WEIGHT_DECAY)

    @abstractmethod
    def loss(self, rng: random.Random) -> Tensor:
        """The loss of a step that draws by ``rng``."""

    def run(self, state: Path, on_step: Callable[[int, float], None], every: int = 100) -> None:
        """Train to the end, from what ``state`` holds; it is replaced whole after ``every`` so many steps."""
        self._resume(state)
        while self.step < self.steps:
            loss = self._train_step()
            self.losses.append(loss)
            self.step += 1
            on_step(self.step, loss)
            if self.step % every == 0 or self.step == self.steps:
                self._save(state)

    def trained(self) -> dict[str, Tensor]:
        """The weights as they are now."""
        return {name: weight.detach().clone() for name, weight in self.weights.items()}

    def _train_step(self) -> float:
        loss = self.loss(random.Random(f"{self.seed}:{self.step}"))
        share = (
            min(1.0, (self.step + 1) / WARMUP_STEPS) * (1 + math.cos(math.pi * self.step / self.steps)) / 2
        )
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * share * group["times"]
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._trained, LARGEST_GRADIENT)
        self.optimizer.step()
        return float(loss.detach())

    def _save(self, state: Path) -> None:
        held = {
            "step": self.step, "weights": self.weights | self.own, "optimizer": self.optimizer.state_dict(),
            "losses": self.losses, "run": json.dumps([self.steps, self.seed, sorted(self.sources)]),
        }  # fmt: skip
        write_tensors(state, held)

    def _resume(self, state: Path) -> None:
        if not state.exists():
            return
        kinds = {"step": int, "run": str, "weights": dict, "optimizer": dict, "losses": list}
        held = read_tensors(state, kinds)
        if held["run"] != json.dumps([self.steps, self.seed, sorted(self.sources)]):
            raise ValueError(
                f"{state}: the state of a run with other steps, seed or data; expected another --out"
            )
        with torch.no_grad():
            for name, weight in (self.weights | self.own).items():
                weight.copy_(held["weights"][name])
        self.optimizer.load_state_dict(held["optimizer"])
        self.step, self.losses = held["step"], held["losses"]


class EncoderTraining(Finetuning):
    """Fine-tunes an encoder. Every step draws two documents of one source, each source equally often.

    The loss of a question is that of its sentence among all sentences of both stretches (softmax over scaled
    cosines, as in contrastive training), and, with `THRESHOLD_WEIGHT`, that of a threshold which the sentences of
    the other document must stay below and its own must exceed; for a question that its document leaves open, all.
    """

    def __init__(self, file: EncoderFile, sources: dict[str, Source], steps: int, seed: int = 0) -> None:
        own = {"scale": torch.tensor(math.log(FIRST_SCALE)), "threshold": torch.tensor(FIRST_THRESHOLD)}
        super().__init__(file, sources, steps, seed, own)
        self._enclosed = file.loaded("", "cpu", torch.float32).enclosed

    def loss(self, rng: random.Random) -> Tensor:
        """The mean loss of the questions of two stretches."""
        source = self.sources[rng.choice(sorted(self.sources))]
        stretches = [Stretch.drawn(source, rng) for _ in range(2)]
        bert, scale = Bert(self.file.shape, self.weights), self.own["scale"].exp()
        sentences = torch.cat(
            [_vectors(bert, self._enclosed, stretch.sentences, rng) for stretch in stretches]
        )
        stops = np.cumsum([len(stretch.sentences) for stretch in stretches])
        losses = []
        for stretch, stop in zip(stretches, stops.tolist(), strict=True):
            first = stop - len(stretch.sentences)
            own = torch.zeros(len(sentences), dtype=torch.bool)
            own[first:stop] = True
            asked = _questions(bert, self._enclosed, [question.ids for question in stretch.questions])
            for question, scores in zip(stretch.questions, scale * asked @ sentences.T, strict=True):
                losses.append(self._question_loss(scores, own, torch.from_numpy(question.relevant) + first))
        return torch.stack(losses).mean()

    def _question_loss(self, scores: Tensor, own: Tensor, relevant: Tensor) -> Tensor:
        """The loss of a question whose scaled cosines with all sentences, (sentences,), are ``scores``."""
        threshold = self.own["threshold"] * self.own["scale"].exp()
        if not len(relevant):
            return softplus(scores[own].logsumexp(0) - threshold)
        right = torch.zeros_like(own)
        right[relevant] = True
        ranking = softplus(scores[~right].logsumexp(0) - scores[right]).mean()
        below = softplus(scores[~own].logsumexp(0) - threshold)
        above = softplus(threshold - scores[right].logsumexp(0))
        return ranking + THRESHOLD_WEIGHT * (below + above)


def _vectors(bert: Bert, enclosed: Enclosed, sentences: Sequence[list[int]], rng: random.Random) -> Tensor:
    """Vectors of sentences, each read in one window, which begin at random: (sentences, width), of length 1."""
    tokens = TokenizedSentences.of([ids[:WINDOW_TOKENS] for ids in sentences])
    windows, most = [(0, 0)], rng.randint(WINDOW_TOKENS // 5, WINDOW_TOKENS)
    for stop in tokens.ends.tolist():
        if stop - windows[-1][0] > most and windows[-1][1] > windows[-1][0]:
            windows.append((windows[-1][1], stop))
            most = WINDOW_TOKENS
        else:
            windows[-1] = (windows[-1][0], stop)
    states, owners = [], []
    for some in range(0, len(windows), 8):
        batch = windows[some : some + 8]
        ids = [enclosed(tokens.ids[slice(*window)].tolist()) for window in batch]
        read = torch.split(_states(bert, ids), [len(own) for own in ids])
        states += [own[1:-1] for own in read]
        owners += [tokens.sentence_of(*window) for window in batch]
    owner = torch.from_numpy(np.concatenate(owners))
    sums = torch.zeros(len(sentences), bert.shape.hidden_size).index_add(0, owner, torch.cat(states))
    return normalize(sums, dim=1)  # of length 1, a sum is as good as a mean


def _questions(bert: Bert, enclosed: Enclosed, questions: Sequence[list[int]]) -> Tensor:
    ids = [enclosed(own) for own in questions]
    states = torch.split(_states(bert, ids), [len(own) for own in ids])
    return normalize(torch.stack([own.mean(0) for own in states]), dim=1)


def _states(bert: Bert, ids: Sequence[Sequence[int]]) -> Tensor:
    with in_bfloat16():
        return bert.forward(ids).float()


@contextmanager
def in_bfloat16() -> Iterator[None]:
    """Compute products in bfloat16, and attention so that its gradient is quick on a CPU."""
    # The gradient of the fused attention takes four times as long as that of the plain one.
    with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
        yield
