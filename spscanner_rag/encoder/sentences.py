"""Vectors of questions and of sentences in their context: what every encoder gives, and one that reads tokens."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.mamba2.backends import compute_in_forks
from spscanner_rag.text.tokenization import encode

WINDOW_TOKENS = 200
"""Of whole sentences in one window, half of which the next window reads again: a sentence at the edge of one
stands inside another. On 192 questions, recall@10 was 55.4 so, 52.9 with 100 tokens, and 49.6 without overlap."""


class TokenizedSentences(NamedTuple):
    """The tokens of sentences, one after the other."""

    ids: NDArray[np.int32]  # (tokens,)
    ends: NDArray[np.int64]  # (sentences,): the number of tokens up to and with each sentence

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

        Each begins with the last sentence that starts in the first half of the one before, if that is another. A
        longer sentence is cut to windows of its own.
        """
        starts = np.concatenate([[0], self.ends[:-1]])
        found: list[tuple[int, int]] = []
        first, total = 0, int(self.ends[-1]) if len(self.ends) else 0
        while first < total:
            inside = int(np.searchsorted(self.ends, first + most, side="right")) - 1
            stop = int(self.ends[inside]) if inside >= 0 else 0
            if stop <= first:  # the sentence alone is longer
                stop = min(first + most, int(self.ends[np.searchsorted(self.ends, first, side="right")]))
            if found and stop == found[-1][1]:  # the next sentence is too long to join: nothing new
                first = stop
                continue
            found.append((first, stop))
            if stop == total:
                break
            middle = int(np.searchsorted(starts, (first + stop) // 2, side="right")) - 1
            following = int(starts[middle])
            if following <= first:  # its first sentence fills more than half of it
                after = int(np.searchsorted(starts, first, side="right"))
                following = min(stop, int(starts[after])) if after < len(starts) else stop
            first = following
        return found


TOKENS_AT_ONCE = 4096  # in one forward pass of the encoder, to bound its memory
_LARGEST_SENTENCE = 16_384  # characters that are tokenized at once

AfterStep = Callable[[int], None]
"""Called after each step with the number of tokens read in it; whatever it raises ends the reading."""


class SentenceVectors(NamedTuple):
    """Vectors of length 1, as int8 with a scale each: 386 bytes for each sentence of the bundled encoder."""

    rows: NDArray[np.int8]  # (sentences, width)
    scales: NDArray[np.float16]  # (sentences,)

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> "SentenceVectors":
        """Scale vectors, (sentences, width), to length 1, and round them; one of zeros stays zeros."""
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
        for start in range(0, len(found), 8192):  # as float32, all rows would take four times their memory
            some = slice(start, start + 8192)
            found[some] = self.rows[some].astype(np.float32) @ question
        return found * self.scales.astype(np.float32)


class SentenceEncoder(Protocol):
    """Gives the vectors of questions and of sentences in their context."""

    digest: str
    """Says which vectors may be compared."""

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,)."""
        ...

    def laid(self, sentences: Sequence[str]) -> Any:  # noqa: ANN401 - an object of its own
        """Lay the sentences of one text, in order, out for `read`; its ``tokens`` says how many that reads."""
        ...

    def read(self, laid: Any, after_step: AfterStep) -> SentenceVectors:  # noqa: ANN401
        """The vectors of the sentences of a text."""
        ...


class LaidTokens(NamedTuple):
    """A text's tokens, and the ranges of them that are read together."""

    sentences: TokenizedSentences
    windows: list[tuple[int, int]]

    @property
    def tokens(self) -> int:
        """The number of tokens that will be read, twice where windows overlap."""
        return sum(stop - start for start, stop in self.windows)


class TokenEncoder:
    """Reads windows of a text once; a sentence's vector is the mean of its tokens' states over its windows.

    This is late chunking (Günther et al. 2024) with short windows. A question, after the text ``prefix``, has the
    mean of the states of its tokens and the two special ones, or with ``first_token`` the state of the first.
    ``digest`` is that of the model's files. ``ValueError`` for a tokenizer without ``[CLS]`` and ``[SEP]``, or
    with more tokens.
    """

    def __init__(
        self, model: Bert, tokenizer: Tokenizer, digest: str, *, prefix: str = "", first_token: bool = False
    ) -> None:
        self.model, self.tokenizer, self.digest = model, tokenizer, digest
        self.prefix, self.first_token = prefix, first_token
        first, last = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        if first is None or last is None or tokenizer.get_vocab_size() > model.shape.vocab_size:
            raise ValueError(
                f"the tokenizer has {tokenizer.get_vocab_size():,} tokens, [CLS] as {first} and [SEP] as {last}; "
                f"expected both, and at most {model.shape.vocab_size:,}: take the tokenizer of the model"
            )
        self._ends = first, last
        self._longest = model.shape.max_position_embeddings - 2

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,). Tokens that the model has no place for are left out."""
        compute_in_forks()
        states = self.model.states([self.enclosed(self.question_ids(query))]).float()
        vector = (states[0] if self.first_token else states.mean(0)).cpu().numpy()
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)

    def question_ids(self, query: str) -> list[int]:
        """The token ids of a question, without special tokens."""
        ids: list[int] = encode(self.tokenizer, self.prefix + query.strip()).ids
        return ids[: self._longest]

    def laid(self, sentences: Sequence[str]) -> LaidTokens:
        """Tokenize the sentences of a text and lay them out in windows."""
        tokens = TokenizedSentences.of([self.ids(sentence) for sentence in sentences])
        return LaidTokens(tokens, tokens.windows(min(WINDOW_TOKENS, self._longest)))

    def read(self, laid: LaidTokens, after_step: AfterStep) -> SentenceVectors:
        """The vectors of the sentences: the same whatever other texts are read."""
        compute_in_forks()
        sentences, width, device = laid.sentences, self.model.shape.hidden_size, self.model.device
        sums = torch.zeros(len(sentences.ends), width, device=device)
        counts = torch.zeros(len(sentences.ends), device=device)
        for batch in self._batches(laid.windows):
            ids = [self.enclosed(sentences.ids[slice(*window)].tolist()) for window in batch]
            states = self.model.states(ids).float()  # (tokens, width)
            stops = np.cumsum([len(own) for own in ids])
            inside = np.ones(len(states), bool)
            inside[[0, *stops[:-1], *(stops - 1)]] = False  # special tokens belong to no sentence
            owners = np.concatenate([sentences.sentence_of(*window) for window in batch])
            owner = torch.from_numpy(owners).to(device)
            sums.index_add_(0, owner, states[torch.from_numpy(inside).to(device)])
            counts.index_add_(0, owner, torch.ones(len(owners), device=device))
            after_step(len(owners))
        return SentenceVectors.of((sums / counts.clamp(min=1)[:, None]).cpu().numpy())

    def ids(self, sentence: str) -> list[int]:
        """The token ids of a sentence, without special tokens."""
        starts = range(0, len(sentence), _LARGEST_SENTENCE)
        pieces = [encode(self.tokenizer, sentence[start : start + _LARGEST_SENTENCE]) for start in starts]
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
