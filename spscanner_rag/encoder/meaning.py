"""How well a sentence's meaning matches a question: cosines, added with weights to the scanner's logits.

A cross-reader reads the likeliest sentences once more, each in its surroundings and
together with the question.
"""

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Final, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import normalize

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.sentences import (
    SentenceEncoder,
    SentenceVectors,
    Step,
    digest_of,
    ignore,
)
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.encoding import encode
from spscanner_rag.text.folding import fold_texts, folded

NEAR, WIDE = 1, 4
"""Neighbours on each side whose mean cosine also counts: a sentence among matching
ones matches better."""

LOWEST: Final = np.float32(-4)
"""The cross-reader's minimum logit, also of sentences that it did not read: how bad
one is means nothing."""

NOTHING: Final = (
    -6.0
)  # the cross-reader's minimum for a text, and its value if nothing was worth reading
BEST_COSINE: Final = 3.0
"""Weight of the best cosine in `one_answers`; of 3, 5, 8 and 10, 3 recognized near
misses of unseen kinds best."""

MOST_BYTES: Final = 2**28  # of vectors kept for later questions: some 700,000 sentences
_QUESTIONS_KEPT = 256
_LARGEST_WEIGHT = 1000.0
_WAIT_SECONDS = 0.025
_TEXTS_READ_AT_ONCE = 64  # number of locks, of which each text has one

_UNRELATED: Final = (
    (
        "Who painted the ceiling of the chapel?",
        "The pump is switched off before the filter is rinsed.",
    ),
    (
        "How many eggs does the cake need?",
        "Members vote by a show of hands at the annual meeting.",
    ),
    (
        "When does the museum open on Sundays?",
        "The enzyme loses its activity above sixty degrees.",
    ),
    (
        "Why did the server stop answering?",
        "In spring the storks return to the village church.",
    ),
    (
        "What is the fine for late payment?",
        "She had never liked the sea, not even as a child.",
    ),
    (
        "Which glands produce saliva?",
        "The parser returns an empty list if no file was found.",
    ),
    (
        "How is the tent put up?",
        "Revenue from licences fell by four percent last year.",
    ),
    ("Where was the treaty signed?", "Stir the sauce until it begins to thicken."),
)
"""Questions and sentences that have nothing to do with each other; their cosines
show where an encoder's begin."""

# What the cross-reader reads
QUESTION_TOKENS: Final = 64  # maximum number of tokens read of a question
WINDOW_TOKENS: Final = (
    140  # maximum number of tokens of a window's sentences; longer sentences are cut
)
# maximum number of windows of a text, in one pass: some 3,000 tokens with the question
WINDOWS: Final = 16
LIKELY: Final = 64  # maximum number of sentences that get a window
REACH: Final = 1.5
"""How far below the best of its text a score may be; on 919 questions, reading more
changed no ranking."""

HOPELESS: Final = -4.0
"""Nothing with a score below this is read, as in texts of a collection that are
about something else."""

_CHARACTERS: Final = (
    16 * WINDOW_TOKENS
)  # maximum number of characters tokenized of a sentence


@dataclass(frozen=True, slots=True)
class MeaningWeights:
    """The weights of a sentence's scores in its logit.

    The object "spscanner.meaning" of ``config.json``.

    The logit is ``bias + scanner * s + sentence * c + near * (n - c) + wide * (w -
    c)``: s is the scanner's own logit, c the cosine of the question with the sentence,
    n and w its mean over the sentences up to `NEAR` and `WIDE` away. ``cross`` weighs
    the cross-reader's logit. ``texts`` weighs how far a text is behind the best of its
    collection by words; of 0.12, 0.4 and 1, 0.4 ranked documents best. ``mean`` and
    ``deviation`` are those of the encoder's cosines of unrelated texts, to which
    another encoder's cosines are scaled. ``answer_scale`` and ``answer_bias`` turn
    `one_answers` into the probability that a text answers; with a scale of 0 there is
    none.
    """

    scanner: float = 1.0
    sentence: float = 0.0
    near: float = 0.0
    wide: float = 0.0
    cross: float = 0.0
    bias: float = 0.0
    texts: float = 0.4
    mean: float = 0.0
    deviation: float = 1.0
    answer_scale: float = 0.0
    answer_bias: float = 0.0

    def __post_init__(self) -> None:
        for weight in fields(self):
            value = getattr(self, weight.name)
            if (
                type(value) not in (int, float)
                or not -_LARGEST_WEIGHT <= value <= _LARGEST_WEIGHT
            ):
                raise ValueError(
                    f"spscanner.meaning.{weight.name} is {value!r:.60}; expected a"
                    f" number of at most {_LARGEST_WEIGHT:,.0f}"
                )
        if self.deviation <= 0:
            raise ValueError(
                f"spscanner.meaning.deviation is {self.deviation!r}; expected a number"
                " above 0"
            )

    def logits(
        self, scanner: NDArray[np.float32], cosines: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The logits of a text's sentences, from the scanner's and the cosines, each (sentences,)."""
        near, wide = _smoothed(cosines, NEAR), _smoothed(cosines, WIDE)
        added = (
            self.sentence * cosines
            + self.near * (near - cosines)
            + self.wide * (wide - cosines)
        )
        return np.asarray(self.bias + self.scanner * scanner + added, np.float32)

    def answerable(self, one_answers: float) -> float | None:
        """The probability that one of a text's sentences answers.

        None without weights for it.
        """
        if not self.answer_scale:
            return None
        # The sigmoid, computed by a hyperbolic tangent, which does not overflow.
        return (
            1 + math.tanh((self.answer_scale * one_answers + self.answer_bias) / 2)
        ) / 2


class Range(NamedTuple):
    """A range of neighbouring sentences, by index."""

    first: int
    stop: int

    def depth(self, number: int, sentences: int) -> int:
        """How many neighbours a sentence has on the side with fewer.

        Ends of the text do not count as edges.
        """
        before = number - self.first if self.first else sentences
        after = self.stop - 1 - number if self.stop < sentences else sentences
        return min(before, after)


class Sentences:
    """The tokens of a text's sentences, at most ``most`` of each, made by ``ids`` on first use."""

    def __init__(
        self, count: int, ids: Callable[[int], list[int]], most: int = WINDOW_TOKENS
    ) -> None:
        self._count, self._ids, self.most = count, ids, most
        self._made: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> list[int]:
        if number not in self._made:
            self._made[number] = self._ids(number)[: self.most]
        return self._made[number]

    def tokens(self, window: Range) -> int:
        """The number of tokens of some sentences."""
        return sum(len(self[number]) for number in range(*window))


class CrossReader:
    """A cross-encoder (Nogueira and Cho 2019) that gives a logit to every sentence of a window.

    It reads ``[CLS] question [SEP] sentences [SEP]``, so that every word is read
    together with the question. A sentence's vector is the mean of its tokens' states,
    the question's vector that of the tokens before them; the logit is their cosine
    times a scale, plus a linear function of the sentence's vector. ``head``,
    (hidden_size + 2,), has the weights of the sentence's vector, the logarithm of the
    scale, and the bias.
    """

    def __init__(self, model: Bert, tokenizer: Tokenizer, head: torch.Tensor) -> None:
        self.model, self.tokenizer, self.head = model, tokenizer, head
        longest = model.shape.max_position_embeddings - 3  # without special tokens
        self.question_tokens = min(QUESTION_TOKENS, longest // 3)
        self.window_tokens = min(WINDOW_TOKENS, longest - self.question_tokens)
        self._first, self._between = (
            tokenizer.token_to_id(token) or 0 for token in ("[CLS]", "[SEP]")
        )

    @torch.inference_mode()
    def logits(
        self,
        query: str,
        sentences: Sequence[str],
        scores: NDArray[np.float32],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> NDArray[np.float32]:
        """The logits of a text's sentences, (sentences,).

        Minus infinity for one that is not read.

        Windows are laid around the sentences with the best ``scores``, (sentences,),
        within `REACH` of the best and not below `HOPELESS`, until there are `WINDOWS`.
        The scores are logits that the scanner's weights calibrate. A sentence in
        several windows takes its logit from the one in which it is farthest from the
        edge. ``before`` and ``after_step`` are called with the number of tokens that
        are read.
        """
        compute_in_forks()

        def ids(number: int) -> list[int]:
            found: list[int] = encode(
                self.tokenizer, sentences[number].strip()[:_CHARACTERS]
            ).ids
            return found

        read = Sentences(len(sentences), ids, self.window_tokens)
        likely = np.argsort(-scores, kind="stable")[:LIKELY]
        likely = likely[
            scores[likely] >= max(scores.max(initial=HOPELESS) - REACH, HOPELESS)
        ]
        windows = sorted(laid_around(likely.tolist(), read), key=read.tokens)
        found, depths = (
            np.full(len(sentences), -np.inf, np.float32),
            np.full(len(sentences), -1),
        )
        if not windows:
            return found
        tokens = sum(map(read.tokens, windows))
        before(tokens)
        question = encode(self.tokenizer, query.strip()).ids[: self.question_tokens]
        asked = [[read[number] for number in range(*window)] for window in windows]
        for window, logits in zip(
            windows, self.forward([question] * len(asked), asked), strict=True
        ):
            for number, logit in zip(range(*window), logits.tolist(), strict=True):
                if (depth := window.depth(number, len(sentences))) > depths[number]:
                    found[number], depths[number] = logit, depth
        after_step(tokens)
        return found

    def forward(
        self, questions: Sequence[list[int]], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[torch.Tensor]:
        """The logits, (sentences,), of each window, whose sentences are given by their tokens."""
        rows, begins, owners, count = (
            list[list[int]](),
            list[int](),
            list[int](),
            len(windows),
        )
        for number, (question, sentences) in enumerate(
            zip(questions, windows, strict=True)
        ):
            rows.append([self._first, *question, self._between])
            begins.append(len(rows[-1]))
            owners += [number] * begins[
                -1
            ]  # the first vectors are those of the questions
            for ids in sentences:
                rows[-1] += ids
                owners += [count] * len(ids)
                count += 1
            rows[-1].append(self._between)
            owners.append(-1)
        states = self.model.forward(rows, begins).float()  # (tokens, hidden_size)
        owner = torch.tensor(owners, device=states.device)
        inside = owner >= 0
        sums = states.new_zeros(count, states.shape[1]).index_add(
            0, owner[inside], states[inside]
        )
        means = (
            sums / torch.bincount(owner[inside], minlength=count).clamp(min=1)[:, None]
        )
        lengths = [len(sentences) for sentences in windows]
        of_window = torch.repeat_interleave(
            torch.tensor(lengths, device=states.device)
        )  # (sentences,)
        asked, vectors = (
            means[of_window],
            means[len(windows) :],
        )  # each (sentences, hidden_size)
        cosines = (normalize(asked, dim=1) * normalize(vectors, dim=1)).sum(1)
        logits = (
            self.head[-2].exp() * cosines + vectors @ self.head[:-2] + self.head[-1]
        )
        return torch.split(logits, lengths)


def laid_around(
    likely: Iterable[int], ids: Sentences, most: int = WINDOWS
) -> list[Range]:
    """Windows around sentences, in their order.

    A sentence inside another's window, off its edge, gets none.
    """
    windows: list[Range] = []
    for number in likely:
        if len(windows) == most:
            break
        if not any(
            window.first <= number < window.stop and window.depth(number, len(ids))
            for window in windows
        ):
            windows.append(_window(number, ids))
    return windows


def _window(number: int, ids: Sentences) -> Range:
    """Whole sentences around one, about as many tokens before it as after it, at most ``ids.most`` in all."""
    first, stop = number, number + 1
    before = after = 0
    own = len(ids[number])
    while stop - first < ids.most:  # some sentences have no tokens
        left = first > 0 and own + before + after + len(ids[first - 1]) <= ids.most
        right = stop < len(ids) and own + before + after + len(ids[stop]) <= ids.most
        if left and (not right or before <= after):
            first -= 1
            before += len(ids[first])
        elif right:
            after += len(ids[stop])
            stop += 1
        else:
            break
    return Range(first, stop)


# Two threads do not read the same text at once; they read different texts at once, a
# short one beside a long one.
_reading: list[threading.RLock]
_lock: threading.Lock


def _new_locks() -> None:
    """Make new locks: in a forked child, no thread holds one."""
    global _lock, _reading
    _lock, _reading = (
        threading.Lock(),
        [threading.RLock() for _ in range(_TEXTS_READ_AT_ONCE)],
    )


_new_locks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_locks)


@contextmanager
def _alone(key: str, after_step: Step) -> Iterator[None]:
    """Keep other threads from reading the same text.

    This thread may, if its ``after_step`` asks for it.
    """
    lock = _reading[int(key, 16) % len(_reading)]
    while not lock.acquire(timeout=_WAIT_SECONDS):
        after_step(0)  # the thread that reads may need what this one holds
    try:
        yield
    finally:
        lock.release()


class VectorStore(Protocol):
    """Keeps vectors outside the process."""

    def get(self, encoder: str, key: str) -> SentenceVectors | None:
        """The vectors that the encoder with a digest made of the sentences with the digest ``key``, if kept."""

    def put(self, encoder: str, key: str, vectors: SentenceVectors) -> None:
        """Keep these vectors."""


class Meaning:
    """An encoder, the vectors that it made, and the weights of its cosines.

    Thread-safe; pickled without vectors.

    ``own``: the weights were made for this encoder; otherwise its cosines are scaled to
    those of the encoder that they were made for. ``cross`` reads the likeliest
    sentences once more.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        weights: MeaningWeights,
        *,
        own: bool = True,
        cross: CrossReader | None = None,
    ) -> None:
        self.encoder, self.weights, self.own = encoder, weights, own
        self.cross = cross if weights.cross else None
        self._kept: OrderedDict[str, SentenceVectors] = OrderedDict()
        self._question = lru_cache(_QUESTIONS_KEPT)(encoder.question)
        self._bytes = 0
        self.store: VectorStore | None = None  # is consulted before a text is read

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """`SentenceEncoder.vectors` of sentences as `fold_texts` reads them, unless they are kept.

        While another thread reads the same text, ``after_step`` is called with 0.
        """
        sentences = fold_texts(sentences)
        key = digest_of(sentences)
        with _alone(key, after_step):  # another thread may be about to keep them
            kept = self.kept(key, len(sentences))
            if kept is None:
                kept = self.encoder.vectors(sentences, before, after_step)
                if self.store:
                    self.store.put(self.encoder.digest, key, kept)
                self.keep(key, kept)
        return kept

    def has(self, sentences: Sequence[str]) -> bool:
        """True if the vectors of these sentences are kept, so that `vectors` reads nothing."""
        sentences = fold_texts(sentences)
        return self.kept(digest_of(sentences), len(sentences)) is not None

    def kept(self, key: str, n_sentences: int) -> SentenceVectors | None:
        """The vectors kept here or in the store under the `digest_of` a text's sentences, if any."""
        with _lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = self.store.get(self.encoder.digest, key) if self.store else None
        if found is None or len(found.rows) != n_sentences:
            return None
        self.keep(key, found)
        return found

    def keep(self, key: str, vectors: SentenceVectors) -> None:
        """Keep the vectors of a text.

        The least recently used ones are removed to make room.
        """
        with _lock:
            before = self._kept.pop(key, None)
            self._bytes += vectors.nbytes - (before.nbytes if before else 0)
            self._kept[key] = vectors
            while self._bytes > MOST_BYTES and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes

    def cosines(self, query: str, vectors: SentenceVectors) -> NDArray[np.float32]:
        """Cosines of a question with sentences, on the scale that the weights were made for: (sentences,)."""
        question = self._question(folded(query))
        if vectors.rows.shape[1:] != question.shape and len(vectors.rows):
            raise ValueError(
                f"the encoder's vectors have {len(question)} numbers for questions,"
                f" {vectors.rows.shape[1]} for sentences; expected the same: use query"
                " and passage models of one kind"
            )
        cosines = (
            vectors.cosines(question) if len(vectors.rows) else np.zeros(0, np.float32)
        )
        if self.own:
            return cosines
        mean, deviation = self._unrelated
        scaled = (
            cosines - mean
        ) / deviation * self.weights.deviation + self.weights.mean
        return np.asarray(scaled, np.float32)

    def read_again(
        self,
        query: str,
        sentences: Sequence[str],
        logits: NDArray[np.float32],
        cosines: NDArray[np.float32],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> tuple[NDArray[np.float32], float | None]:
        """Let the cross-reader read the likeliest of a text's folded sentences.

        Returns the logits, (sentences,), with its own added, and the probability that
        one of the sentences answers, None unless the weights are the encoder's own and
        include that. ``cosines`` are those of the question, (sentences,); ``before``
        and ``after_step`` are as for `vectors`.
        """
        read = None
        if self.cross is not None and len(logits):
            read = self.cross.logits(
                folded(query), sentences, logits, before, after_step
            )
            logits = np.asarray(
                logits + self.weights.cross * np.maximum(read, LOWEST), np.float32
            )
        return logits, (
            self.weights.answerable(one_answers(cosines, read)) if self.own else None
        )

    @cached_property
    def _unrelated(self) -> tuple[float, float]:
        return unrelated_cosines(self.encoder)

    def __reduce__(self) -> tuple[Callable[..., "Meaning"], tuple[object, ...]]:
        return partial(Meaning, own=self.own, cross=self.cross), (
            self.encoder,
            self.weights,
        )


def unrelated_cosines(encoder: SentenceEncoder) -> tuple[float, float]:
    """Mean and standard deviation of an encoder's cosines of `_UNRELATED` questions and sentences."""
    sentences = [encoder.vectors([sentence]) for _, sentence in _UNRELATED]
    questions = [encoder.question(question) for question, _ in _UNRELATED]
    cosines = [
        float(vectors.cosines(question)[0])
        for question in questions
        for vectors in sentences
    ]
    return float(np.mean(cosines)), max(float(np.std(cosines)), 1e-3)


def one_answers(
    cosines: NDArray[np.float32], read: NDArray[np.float32] | None
) -> float:
    """A score of how probably one of a text's sentences answers, from cosines and logits ``read``, (sentences,).

    The cross-reader's logits enter by the logarithm of their summed exponentials, which
    its training keeps below 0 if no sentence answers. The scanner's logits are left
    out: near misses share more words with a question.
    """
    if not len(cosines):
        return -math.inf
    score = BEST_COSINE * float(cosines.max())
    if read is not None:
        score -= float(np.logaddexp(0, -max(float(np.logaddexp.reduce(read)), NOTHING)))
    return score


def _smoothed(values: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """The mean of each value and its neighbours up to ``reach`` away."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    at = np.arange(len(values))
    first, stop = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(values))
    return np.asarray((sums[stop] - sums[first]) / (stop - first), np.float32)
