"""Vectors of questions and of sentences in their context, which every encoder makes.

`TokenEncoder` reads tokens. `TextEncoder` uses an embedding model of the user: of
LlamaIndex, LangChain or sentence-transformers, or a function.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.encoding import encode
from spscanner_rag.text.surrogates import replace_surrogates

WINDOW_TOKENS = 200
"""Maximum number of tokens of whole sentences in a window. The next window reads
half of them again, so a sentence at the edge of one is inside another. On 192
questions, recall@10 was 55.4, 52.9 with 100, 49.6 without overlap."""


class TokenizedSentences(NamedTuple):
    """The tokens of sentences, one after the other."""

    ids: NDArray[np.int32]  # (tokens,)
    ends: NDArray[
        np.int64
    ]  # (sentences,): the number of tokens up to and with each sentence

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "TokenizedSentences":
        """Join the token ids of sentences."""
        ids = [np.asarray(ids, np.int32) for ids in sentences]
        return cls(
            np.concatenate([*ids, np.empty(0, np.int32)]),
            np.cumsum([len(own) for own in ids], dtype=np.int64),
        )

    def sentence_of(self, start: int, end: int) -> NDArray[np.int64]:
        """The number of the sentence that each token of a range is in: (tokens of the range,)."""
        return np.searchsorted(self.ends, np.arange(start, end), side="right")

    def windows(self, most: int = WINDOW_TOKENS) -> list[tuple[int, int]]:
        """Token ranges that together hold every token: whole sentences, up to ``most`` tokens.

        Each begins with the last sentence that starts in the first half of the previous
        window, if that is not its first sentence. A longer sentence is cut into windows
        of its own.
        """
        starts = np.concatenate([[0], self.ends[:-1]])
        found: list[tuple[int, int]] = []
        first, total = 0, int(self.ends[-1]) if len(self.ends) else 0
        while first < total:
            inside = int(np.searchsorted(self.ends, first + most, side="right")) - 1
            stop = int(self.ends[inside]) if inside >= 0 else 0
            if stop <= first:  # the sentence alone is longer
                stop = min(
                    first + most,
                    int(self.ends[np.searchsorted(self.ends, first, side="right")]),
                )
            if (
                found and stop == found[-1][1]
            ):  # the next sentence is too long to join: nothing new
                first = stop
                continue
            found.append((first, stop))
            if stop == total:
                break
            middle = int(np.searchsorted(starts, (first + stop) // 2, side="right")) - 1
            following = int(starts[middle])
            if following <= first:  # its first sentence fills more than half of it
                after = int(np.searchsorted(starts, first, side="right"))
                following = (
                    min(stop, int(starts[after])) if after < len(starts) else stop
                )
            first = following
        return found


TOKENS_AT_ONCE = 4096  # in one forward pass of the encoder, to bound its memory
_LARGEST_SENTENCE = 16_384  # characters that are tokenized at once

Step = Callable[[int], None]
"""Called with a number of tokens that will be read, or were read in a step; an
exception ends the reading."""


def ignore(tokens: int) -> None:
    """A `Step` that does nothing."""


class SentenceVectors(NamedTuple):
    """Vectors of length 1, each as int8 with a scale: 386 bytes per sentence with the bundled encoder."""

    rows: NDArray[np.int8]  # (sentences, width)
    scales: NDArray[np.float16]  # (sentences,)

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> "SentenceVectors":
        """Scale vectors, (sentences, width), to length 1, and round them.

        A vector of zeros stays zeros.
        """
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(lengths, 1e-12)
        scales = (np.abs(vectors).max(axis=1, initial=0) / 127).astype(np.float16)
        rows = np.rint(vectors / np.maximum(scales.astype(np.float32), 1e-6)[:, None])
        return cls(np.clip(rows, -127, 127).astype(np.int8), scales)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.rows.nbytes + self.scales.nbytes

    def cosines(self, question: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines with the vector of a question, (width,) of length 1: (sentences,)."""
        found = np.empty(len(self.rows), np.float32)
        for start in range(
            0, len(found), 8192
        ):  # as float32, all rows would take four times their memory
            some = slice(start, start + 8192)
            found[some] = self.rows[some].astype(np.float32) @ question
        return found * self.scales.astype(np.float32)


class SentenceEncoder(Protocol):
    """Makes the vectors of questions and of sentences in their context."""

    digest: str
    """Vectors may be compared if their encoders have the same digest."""

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,)."""
        ...

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """The vectors of the sentences of one text, in order.

        ``before`` is called with the number of tokens to read, ``after_step`` with
        those read in each step.
        """
        ...


class TokenEncoder:
    """Reads windows of a text once.

    A sentence's vector is the mean of its tokens' states over its windows.

    This is late chunking (Günther et al. 2024) with short windows. The vector of a
    question, read after the text ``prefix``, is the mean of the states of its tokens
    and the two special ones, or with ``first_token`` the state of the first. ``digest``
    is that of the model's files. ``ValueError`` for a tokenizer without ``[CLS]`` and
    ``[SEP]``, or with more tokens than the model.
    """

    def __init__(
        self,
        model: Bert,
        tokenizer: Tokenizer,
        digest: str,
        *,
        prefix: str = "",
        first_token: bool = False,
    ) -> None:
        self.model, self.tokenizer, self.digest = model, tokenizer, digest
        self.prefix, self.first_token = prefix, first_token
        first, last = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        if (
            first is None
            or last is None
            or tokenizer.get_vocab_size() > model.shape.vocab_size
        ):
            raise ValueError(
                f"the tokenizer has {tokenizer.get_vocab_size():,} tokens, [CLS] as"
                f" {first} and [SEP] as {last}; expected both, and at most"
                f" {model.shape.vocab_size:,}: take the tokenizer of the model"
            )
        self._ends = first, last
        self._longest = model.shape.max_position_embeddings - 2

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,).

        Tokens beyond the model's maximum are left out.
        """
        compute_in_forks()
        states = self.model.states([self.enclosed(self.question_ids(query))]).float()
        vector = (states[0] if self.first_token else states.mean(0)).cpu().numpy()
        return np.asarray(
            vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32
        )

    def question_ids(self, query: str) -> list[int]:
        """The token ids of a question, without special tokens."""
        ids: list[int] = encode(self.tokenizer, self.prefix + query.strip()).ids
        return ids[: self._longest]

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """The vectors of the sentences of a text, which do not depend on other texts."""
        return self.read(
            TokenizedSentences.of([self.ids(own) for own in sentences]),
            before,
            after_step,
        )

    def read(
        self,
        sentences: TokenizedSentences,
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> SentenceVectors:
        """`vectors` of sentences that are already tokenized."""
        windows = sentences.windows(min(WINDOW_TOKENS, self._longest))
        before(sum(stop - start for start, stop in windows))
        compute_in_forks()
        width, device = self.model.shape.hidden_size, self.model.device
        sums = torch.zeros(len(sentences.ends), width, device=device)
        counts = torch.zeros(len(sentences.ends), device=device)
        for batch in self._batches(windows):
            ids = [
                self.enclosed(sentences.ids[slice(*window)].tolist())
                for window in batch
            ]
            states = self.model.states(ids).float()  # (tokens, width)
            stops = np.cumsum([len(own) for own in ids])
            inside = np.ones(len(states), bool)
            inside[[0, *stops[:-1], *(stops - 1)]] = (
                False  # special tokens belong to no sentence
            )
            owners = np.concatenate(
                [sentences.sentence_of(*window) for window in batch]
            )
            owner = torch.from_numpy(owners).to(device)
            sums.index_add_(0, owner, states[torch.from_numpy(inside).to(device)])
            counts.index_add_(0, owner, torch.ones(len(owners), device=device))
            after_step(len(owners))
        return SentenceVectors.of((sums / counts.clamp(min=1)[:, None]).cpu().numpy())

    def ids(self, sentence: str) -> list[int]:
        """The token ids of a sentence, without special tokens."""
        starts = range(0, len(sentence), _LARGEST_SENTENCE)
        pieces = [
            encode(self.tokenizer, sentence[start : start + _LARGEST_SENTENCE])
            for start in starts
        ]
        return [token for piece in pieces for token in piece.ids]

    def enclosed(self, ids: Sequence[int]) -> list[int]:
        """Token ids between the special tokens."""
        return [self._ends[0], *ids, self._ends[1]]

    @staticmethod
    def _batches(windows: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        batches: list[list[tuple[int, int]]] = []
        room = 0
        for start, stop in windows:
            if stop - start > room:
                batches.append([])
                room = TOKENS_AT_ONCE
            batches[-1].append((start, stop))
            room -= stop - start
        return batches


def digest_of(sentences: Sequence[str]) -> str:
    """A digest of the sentences of a text, in order."""
    digest = hashlib.sha256()
    for sentence in sentences:
        content = sentence.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


Embed = Callable[[list[str]], Any]

_TEXTS_AT_ONCE = 64
_KEPT = 4096  # vectors of texts that were embedded before a later call failed
_CHARACTERS_PER_TOKEN = 4


class Embedder(NamedTuple):
    """Functions that embed queries and passages, one vector per text."""

    queries: Embed
    passages: Embed
    name: str
    model: Any = None  # if it is a sentence-transformers model


def embedder_of(embedder: object, *, batch_size: int = 32) -> Embedder:
    """Wrap a model of sentence-transformers, LlamaIndex or LangChain, or a function.

    Else ``TypeError``.
    """
    kind = type(embedder).__name__
    if callable(documents := getattr(embedder, "embed_documents", None)):
        query = embedder.embed_query  # type: ignore[attr-defined]
        return Embedder(partial(_one_by_one, query), documents, kind)
    if callable(batch := getattr(embedder, "get_text_embedding_batch", None)):
        query = embedder.get_query_embedding  # type: ignore[attr-defined]
        return Embedder(
            partial(_one_by_one, query), batch, getattr(embedder, "model_name", kind)
        )
    if callable(encode := getattr(embedder, "encode", None)):
        embed = partial(
            encode,
            batch_size=batch_size,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        card = getattr(embedder, "model_card_data", None)
        name = getattr(card, "base_model", None) or getattr(
            embedder, "name_or_path", None
        )
        return Embedder(embed, embed, name if isinstance(name, str) else kind, embedder)
    if callable(embedder):
        return Embedder(embedder, embedder, getattr(embedder, "__name__", kind))
    raise TypeError(
        f"embedder is {kind}; expected a model name, a sentence-transformers model, a"
        " LlamaIndex or LangChain embedding model, or a function from a list of texts"
        " to vectors"
    )


def embed_checked(
    embed: Embed, texts: Sequence[str], width: int | None = None
) -> NDArray[np.float32]:
    """Finite vectors of texts, in order: (texts, width).

    Raises ``ValueError`` if the embedder returns others.
    """
    # Sorted by length, so that batches need little padding.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    got = [
        np.asarray(vector, np.float32)
        for vector in embed([replace_surrogates(texts[i]) for i in order])
    ]
    if len(got) != len(texts):
        raise ValueError(
            f"the embedder returned {len(got)} vectors for {len(texts)} texts; expected"
            " one each"
        )
    vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
    for i, vector in zip(order, got, strict=True):
        expected = width or len(got[0].reshape(-1))
        if vector.shape != (expected,) or not np.isfinite(vector).all():
            fault = (
                f"a vector of shape {vector.shape}"
                if vector.shape != (expected,)
                else "NaN or infinity"
            )
            raise ValueError(
                f"the embedder returned {fault} for the text {texts[i]!r:.120};"
                f" expected {expected} finite numbers"
            )
        vectors[i] = vector
    return np.stack(vectors) if vectors else np.empty((0, width or 0), np.float32)


def _one_by_one(embed_query: Callable[[str], Any], texts: list[str]) -> list[Any]:
    return [embed_query(text) for text in texts]


class TextEncoder:
    """A `SentenceEncoder` made from an embedder (`embedder_of`), which makes only vectors of whole texts.

    A sentence's vector is the sum of its own vector and the mean of its windows'
    vectors, each of length 1. Texts embedded before an embedder failed are not embedded
    again. Embedders with one name count as one.
    """

    def __init__(self, embedder: object) -> None:
        self._embedder = embedder_of(embedder)
        name = f"{type(embedder).__qualname__}:{self._embedder.name}"
        self.digest = hashlib.sha256(name.encode()).hexdigest()
        self._kept: dict[str, NDArray[np.float32]] = {}

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,)."""
        return np.asarray(
            _normalized(embed_checked(self._embedder.queries, [query]))[0], np.float32
        )

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """The vectors of the sentences.

        ``ValueError`` for NaN, infinity, or vectors of different widths.

        Sentences are embedded alone, and in windows of about `WINDOW_TOKENS` tokens;
        their tokens are estimated.
        """
        numbers = TokenizedSentences.of(
            [[n] * _estimated(text) for n, text in enumerate(sentences)]
        )
        ranges = [
            (int(numbers.ids[start]), int(numbers.ids[stop - 1]) + 1)
            for start, stop in numbers.windows()
        ]
        ranges = list(dict.fromkeys(ranges))
        windows = ["".join(sentences[slice(*each)]) for each in ranges]
        before(sum(map(_estimated, [*sentences, *windows])))
        own, around = (
            self._embedded(sentences, after_step),
            self._embedded(windows, after_step),
        )
        context = np.zeros_like(own)
        for vector, (first, stop) in zip(around, ranges, strict=True):
            context[first:stop] += vector
        return SentenceVectors.of(own + _normalized(context))

    def _embedded(self, texts: Sequence[str], after_step: Step) -> NDArray[np.float32]:
        found: list[NDArray[np.float32]] = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = texts[first : first + _TEXTS_AT_ONCE]
            known = {
                text: kept
                for text in batch
                if (kept := self._kept.get(text)) is not None
            }
            missing = [text for text in dict.fromkeys(batch) if text not in known]
            if missing:
                width = len(found[0]) if found else None
                vectors = embed_checked(self._embedder.passages, missing, width)
                known |= zip(missing, _normalized(vectors), strict=True)
            self._kept |= known
            for oldest in list(self._kept)[:-_KEPT]:
                self._kept.pop(oldest, None)
            found += [known[text] for text in batch]
            after_step(sum(map(_estimated, batch)))
        return np.stack(found) if found else np.empty((0, 0), np.float32)


def _estimated(text: str) -> int:
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def _normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12),
        np.float32,
    )
