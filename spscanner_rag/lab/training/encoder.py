"""Train an encoder on questions: a sentence read in its context shall lie near the questions that it answers."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import normalize, softplus

from spscanner_rag.checkpoint.encoder_file import EncoderFile, find_encoder
from spscanner_rag.checkpoint.save import save_checkpoint
from spscanner_rag.encoder.bert import Bert, quantized, restored
from spscanner_rag.encoder.meaning import Meaning, MeaningWeights, unrelated_cosines
from spscanner_rag.encoder.sentences import TokenEncoder
from spscanner_rag.encoder.windows import WINDOW_TOKENS, TokenizedSentences
from spscanner_rag.lab.evidence.calibration import fit_platt
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.evidence.sampling import by_document, is_held_out, sample_questions
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.mamba2.forks import compute_in_forks
from spscanner_rag.mamba2.reader import keep_freed_memory
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scanner import Scanner
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
_WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"


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
    starts, ends = (np.array([unit[side] for unit in units], np.int64) for side in (0, 1))
    asked = []
    for question in document.questions:
        relevant = np.flatnonzero(relevant_units(starts, ends, question.evidence))
        is_open = not question.answerable or not question.evidence
        if is_open or (0 < len(relevant) <= MOST_EVIDENCE and not question.ambiguous):
            asked.append(
                Asked(encoder.question_ids(folded(question.text)), relevant[:0] if is_open else relevant)
            )
    return [encoder.ids(unit.model_text) for unit in fold_units(units)], asked


class EncoderTraining:
    """Fine-tunes an encoder. Every step draws two documents of one source, each source equally often.

    The loss of a question is that of its sentence among all sentences of both stretches (softmax over scaled
    cosines, as in contrastive training), and, with `THRESHOLD_WEIGHT`, that of a threshold which the sentences of
    the other document must stay below and its own must exceed; for a question that its document leaves open, all.
    Word embeddings are frozen: they are half of the weights, and few words of a new document were trained on.

    Parameters
    ----------
    file : EncoderFile
        Where training starts.
    sources : dict of str to Source
    steps : int
        The learning rate falls to 0 along a cosine.
    seed : int, default 0
        With the number of a step, determines what it draws.
    """

    def __init__(self, file: EncoderFile, sources: dict[str, Source], steps: int, seed: int = 0) -> None:
        compute_in_forks()
        keep_freed_memory()
        self.file, self.sources, self.steps, self.seed = file, sources, steps, seed
        self.step, self.losses = 0, list[float]()
        kept = restored(file.weights)
        self.weights = {name: kept[name].float().clone() for name in file.shape.tensors()}
        trained = [weight for name, weight in self.weights.items() if name != _WORD_EMBEDDINGS]
        self.scale = torch.tensor(math.log(FIRST_SCALE))  # of cosines, as a logarithm
        self.threshold = torch.tensor(FIRST_THRESHOLD)  # a cosine
        for weight in (*trained, self.scale, self.threshold):
            weight.requires_grad_()
        own = {"params": [self.scale, self.threshold], "weight_decay": 0.0, "times": 10}
        groups: list[dict[str, Any]] = [{"params": trained, "times": 1}, own]
        self.optimizer = torch.optim.AdamW(groups, LEARNING_RATE, (0.9, 0.99), weight_decay=WEIGHT_DECAY)
        self._trained = trained
        self.encoder = file.loaded("", "cpu", torch.float32)  # whose tokens are used, not its weights

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

    def trained(self) -> EncoderFile:
        """The encoder as it is now."""
        return self.file._replace(
            weights={name: weight.detach().clone() for name, weight in self.weights.items()}
        )

    def _train_step(self) -> float:
        rng = random.Random(f"{self.seed}:{self.step}")
        source = self.sources[rng.choice(sorted(self.sources))]
        loss = self._loss([Stretch.drawn(source, rng) for _ in range(2)], rng)
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

    def _loss(self, stretches: Sequence[Stretch], rng: random.Random) -> Tensor:
        bert, scale = Bert(self.file.shape, self.weights), self.scale.exp()
        sentences = torch.cat(
            [_vectors(bert, self.encoder.enclosed, stretch.sentences, rng) for stretch in stretches]
        )
        stops = np.cumsum([len(stretch.sentences) for stretch in stretches])
        losses = []
        for stretch, stop in zip(stretches, stops.tolist(), strict=True):
            first = stop - len(stretch.sentences)
            own = torch.zeros(len(sentences), dtype=torch.bool)
            own[first:stop] = True
            asked = _questions(bert, self.encoder.enclosed, [question.ids for question in stretch.questions])
            for question, scores in zip(stretch.questions, scale * asked @ sentences.T, strict=True):
                losses.append(self._question_loss(scores, own, torch.from_numpy(question.relevant) + first))
        return torch.stack(losses).mean()

    def _question_loss(self, scores: Tensor, own: Tensor, relevant: Tensor) -> Tensor:
        """The loss of a question whose scaled cosines with all sentences, (sentences,), are ``scores``."""
        threshold = self.threshold * self.scale.exp()
        if not len(relevant):
            return softplus(scores[own].logsumexp(0) - threshold)
        right = torch.zeros_like(own)
        right[relevant] = True
        ranking = softplus(scores[~right].logsumexp(0) - scores[right]).mean()
        below = softplus(scores[~own].logsumexp(0) - threshold)
        above = softplus(threshold - scores[right].logsumexp(0))
        return ranking + THRESHOLD_WEIGHT * (below + above)

    def _save(self, state: Path) -> None:
        held = {
            "step": self.step, "weights": self.weights, "optimizer": self.optimizer.state_dict(),
            "scale": self.scale, "threshold": self.threshold, "losses": self.losses,
            "run": json.dumps([self.steps, self.seed, sorted(self.sources)]),
        }  # fmt: skip
        unfinished = state.with_name(state.name + ".part")
        torch.save(held, unfinished)
        unfinished.replace(state)

    def _resume(self, state: Path) -> None:
        if not state.exists():
            return
        held = torch.load(state, weights_only=True)
        if held["run"] != json.dumps([self.steps, self.seed, sorted(self.sources)]):
            raise ValueError(
                f"{state}: the state of a run with other steps, seed or data; expected another --out"
            )
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(held["weights"][name])
            self.scale.copy_(held["scale"])
            self.threshold.copy_(held["threshold"])
        self.optimizer.load_state_dict(held["optimizer"])
        self.step, self.losses = held["step"], held["losses"]


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
    """Vectors of questions: (questions, width), of length 1."""
    ids = [enclosed(own) for own in questions]
    states = torch.split(_states(bert, ids), [len(own) for own in ids])
    return normalize(torch.stack([own.mean(0) for own in states]), dim=1)


def _states(bert: Bert, ids: Sequence[Sequence[int]]) -> Tensor:
    # On a CPU the gradient of the fused attention takes four times as long as that of the plain one.
    with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
        return bert.forward(ids).float()


class Fitted(NamedTuple):
    """The scores of a question's sentences, each (sentences,), and which of them are relevant."""

    source: str
    scanner: NDArray[np.float32]
    cosines: NDArray[np.float32]
    relevant: NDArray[np.bool_]


FIT_STEPS, FIT_RATE = 150, 0.05
_FEATURES = ("scanner", "sentence", "near", "wide")


def read_for_fit(
    scanner: Scanner, meaning: Meaning, documents: Iterable[Document], per_source: int
) -> Iterator[Fitted]:
    """Read up to ``per_source`` questions of each source with a scanner without encoder, and with an encoder."""
    for answerable in (True, False):
        sample = sample_questions(documents, per_source, answerable=answerable)
        for source, asked in sample.items():
            for document, questions in by_document(asked):
                units = scanner.segment(document.text)
                vectors = meaning.vectors([unit.model_text for unit in units])
                requests = [(question.text, document.text, units) for question in questions]
                for question, logits in zip(questions, scanner.score_units_many(requests), strict=True):
                    starts, ends = (np.array([unit[side] for unit in units], np.int64) for side in (0, 1))
                    relevant = relevant_units(starts, ends, question.evidence if answerable else ())
                    if relevant.any() or not answerable:
                        yield Fitted(source, logits, meaning.cosines(question.text, vectors), relevant)


def read_elsewhere(
    scanner: Scanner, meaning: Meaning, documents: Iterable[Document], per_source: int
) -> Iterator[Fitted]:
    """As `read_for_fit`, but ask each document a question of one from another source, which it says nothing of."""
    sample = sample_questions(documents, per_source, answerable=True)
    asked = [(document, some[0]) for own in sample.values() for document, some in by_document(own)]
    for number, (document, _) in enumerate(asked):
        other, question = asked[(number + len(asked) // 2) % len(asked)]
        if other.source != document.source:
            units = scanner.segment(document.text)
            vectors = meaning.vectors([unit.model_text for unit in units])
            logits = scanner.score_units(question.text, document.text, units)
            cosines = meaning.cosines(question.text, vectors)
            yield Fitted(document.source, logits, cosines, np.zeros(len(units), bool))


def fitted_weights(
    read: Sequence[Fitted], start: MeaningWeights, elsewhere: Sequence[Fitted] = ()
) -> MeaningWeights:
    """Weigh a scanner's logits and an encoder's cosines.

    The weights are those of the least softmax loss of the relevant sentences, every source counting alike. They
    are then scaled and shifted so that the sigmoid of a logit is the share of relevant sentences (Platt scaling).
    Raises ``ValueError`` without any.
    """
    answered = [one for one in read if one.relevant.any()]
    if not answered:
        raise ValueError(
            "got no question with evidence to fit the weights on; expected held-out documents with some"
        )
    weights = torch.tensor([0.3, 2.0, 0.0, 0.0], requires_grad=True)
    optimizer = torch.optim.Adam([weights], FIT_RATE)
    counts = Counter(one.source for one in answered)
    columns = [
        (torch.from_numpy(_columns(one)), torch.from_numpy(one.relevant), counts[one.source])
        for one in answered
    ]
    for _ in range(FIT_STEPS):
        losses = []
        for scores, relevant, count in columns:
            logits = scores @ (weights * torch.tensor([1.0, 10.0, 10.0, 10.0]))
            losses.append(softplus(logits[~relevant].logsumexp(0) - logits[relevant]).mean() / count)
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    found = (weights.detach() * torch.tensor([1.0, 10.0, 10.0, 10.0])).tolist()
    mixed = replace(start, **dict(zip(_FEATURES, found, strict=True)), bias=0.0)
    mixture = [mixed.logits(one.scanner, one.cosines) for one in read]
    scale, shift = fit_platt(np.concatenate(mixture), np.concatenate([one.relevant for one in read]))
    mixed = replace(
        mixed, **{name: scale * value for name, value in zip(_FEATURES, found, strict=True)}, bias=shift
    )
    scale, shift = _answer_weights(mixed, read, elsewhere)
    return replace(mixed, answer_scale=scale, answer_bias=shift)


def _answer_weights(
    mixed: MeaningWeights, read: Sequence[Fitted], elsewhere: Sequence[Fitted]
) -> tuple[float, float]:
    """What makes of a text's best logit the probability that the text answers.

    Texts that answer are held against texts from ``elsewhere``, against those that leave a question open and,
    since these are few, against themselves without the sentences that answer. Where too few were read, or the
    logit does not tell, nothing is said: the scale is 0.
    """
    best, answers = list[float](), list[bool]()
    for one in (*read, *elsewhere):
        logits = mixed.logits(one.scanner, one.cosines)
        if one.relevant.any():
            best += [float(logits.max())] * 2  # so that about half of all answer
            answers += [True, True]
        if not one.relevant.all():
            best.append(float(logits[~one.relevant].max()))
            answers.append(False)
    try:
        scale, shift = fit_platt(best, answers)
    except ValueError:  # one kind only, or none that overlap
        return 0.0, 0.0
    return (scale, shift) if scale > 0 else (0.0, 0.0)


def _columns(one: Fitted) -> NDArray[np.float32]:
    """The scores that `_FEATURES` weighs: (sentences, 4)."""
    parts = [MeaningWeights(**{"scanner": 0.0} | {name: 1.0}) for name in _FEATURES]
    return np.stack([part.logits(one.scanner, one.cosines) for part in parts], axis=1)


def put_into_checkpoint(
    model: str | Path,
    base: str | None,
    documents: Sequence[Document],
    out: Path,
    steps: int,
    most_documents: int,
    questions: int,
    seed: int,
    notify: Notify,
) -> None:
    """Train an encoder, weigh it beside a scanner, and save both to the checkpoint ``out``, with a model card.

    Without ``steps`` the encoder is taken as it is. An interrupted training goes on from ``out``'s state file,
    which is removed at the end. Raises the errors of what it calls, before anything is written.
    """
    for name, value, least in (
        ("steps", steps, 0),
        ("documents", most_documents, 1),
        ("questions", questions, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; expected at least {least}")
    scanner = Scanner.from_pretrained(base, dtype="float32", device="cpu", encoder=None)
    file, digest = find_encoder(model)
    notify("cutting and tokenizing the documents")
    sources, aside = read_sources(documents, file.loaded(digest, "cpu", torch.float32), most_documents, seed)
    out.mkdir(parents=True, exist_ok=True)
    state = out / "encoder_training.pt"
    if steps:
        training = EncoderTraining(file, sources, steps, seed)

        def on_step(step: int, loss: float) -> None:
            if step % 20 == 0:
                notify(f"step {step:,} of {steps:,}  loss {np.mean(training.losses[-20:]):.3f}")

        training.run(state, on_step)
        file = training.trained()
    file = file._replace(weights=quantized(restored(file.weights)))  # as it will be read
    encoder = file.loaded("", "cpu", torch.float32)
    mean, deviation = unrelated_cosines(encoder)
    start = MeaningWeights(mean=mean, deviation=deviation)
    notify(f"reading up to {questions} held-out questions of each source")
    read = list(read_for_fit(scanner, Meaning(encoder, start), aside, questions))
    elsewhere = list(read_elsewhere(scanner, Meaning(encoder, start), aside, questions))
    weights = fitted_weights(read, start, elsewhere)
    record = {
        "started_from": Path(model).name if Path(model).is_dir() else str(model),
        "steps": steps,
        "seed": seed,
        "documents_by_source": {name: len(source.documents) for name, source in sources.items()},
        "weighed_on": dict(Counter(one.source for one in read)),
    }
    checkpoint = scanner.checkpoint
    trained = checkpoint.settings.training | {"encoder": record}
    settings = replace(checkpoint.settings, meaning=weights, training=trained)
    save_checkpoint(
        out,
        checkpoint.model,
        settings,
        checkpoint.tokenizer,
        torch.bfloat16,
        word_vectors=checkpoint.word_vectors,
        encoder=file,
    )
    if "stage" in trained:
        write_model_card(out, checkpoint.model, settings, checkpoint.word_vectors)
    state.unlink(missing_ok=True)
    notify(f"{out}: weights {weights}")
