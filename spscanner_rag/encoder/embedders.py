"""A user's own embedding model: LlamaIndex's, LangChain's, sentence-transformers' or a function."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.sentences import AfterStep, SentenceVectors, TokenizedSentences
from spscanner_rag.text.units import readable

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
    """Wrap a model of sentence-transformers, LlamaIndex or LangChain, or a function; else ``TypeError``."""
    kind = type(embedder).__name__
    if callable(documents := getattr(embedder, "embed_documents", None)):
        query = embedder.embed_query  # type: ignore[attr-defined]
        return Embedder(partial(_one_by_one, query), documents, kind)
    if callable(batch := getattr(embedder, "get_text_embedding_batch", None)):
        query = embedder.get_query_embedding  # type: ignore[attr-defined]
        return Embedder(partial(_one_by_one, query), batch, getattr(embedder, "model_name", kind))
    if callable(encode := getattr(embedder, "encode", None)):
        embed = partial(encode, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False)
        card = getattr(embedder, "model_card_data", None)
        name = getattr(card, "base_model", None) or getattr(embedder, "name_or_path", None)
        return Embedder(embed, embed, name if isinstance(name, str) else kind, embedder)
    if callable(embedder):
        return Embedder(embedder, embedder, getattr(embedder, "__name__", kind))
    raise TypeError(
        f"embedder is {kind}; expected a model name, a sentence-transformers model, a LlamaIndex or LangChain "
        "embedding model, or a function from a list of texts to vectors"
    )


def embed_checked(embed: Embed, texts: Sequence[str], width: int | None = None) -> NDArray[np.float32]:
    """Finite vectors of texts, in order: (texts, width). Raises ``ValueError`` for any other."""
    # Sorted by length, so that batches need little padding.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    got = [np.asarray(vector, np.float32) for vector in embed([readable(texts[i]) for i in order])]
    if len(got) != len(texts):
        raise ValueError(
            f"the embedder returned {len(got)} vectors for {len(texts)} texts; expected one each"
        )
    vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
    for i, vector in zip(order, got, strict=True):
        expected = width or len(got[0].reshape(-1))
        if vector.shape != (expected,) or not np.isfinite(vector).all():
            fault = f"a vector of shape {vector.shape}" if vector.shape != (expected,) else "NaN or infinity"
            raise ValueError(
                f"the embedder returned {fault} for the text {texts[i]!r:.120}; expected {expected} finite numbers"
            )
        vectors[i] = vector
    return np.stack(vectors) if vectors else np.empty((0, width or 0), np.float32)


def _one_by_one(embed_query: Callable[[str], Any], texts: list[str]) -> list[Any]:
    return [embed_query(text) for text in texts]


class LaidTexts(NamedTuple):
    """A text's sentences, and the windows of whole sentences that are embedded beside them."""

    sentences: Sequence[str]
    windows: list[tuple[int, int]]  # sentence numbers: first, and one after the last

    @property
    def tokens(self) -> int:
        """An estimate of the tokens that will be read."""
        return sum(map(_estimated, self.sentences)) + sum(
            sum(map(_estimated, self.sentences[slice(*window)])) for window in self.windows
        )


class TextEncoder:
    """A `SentenceEncoder` made of an embedder (`embedder_of`), which gives vectors of whole texts only.

    A sentence's vector is the sum of its own and the mean of its windows', each of length 1. What was embedded
    before an embedder failed is not embedded again. The embedder's name is taken to say which vectors compare.
    """

    def __init__(self, embedder: object) -> None:
        self._embedder = embedder_of(embedder)
        name = f"{type(embedder).__qualname__}:{self._embedder.name}"
        self.digest = hashlib.sha256(name.encode()).hexdigest()
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def question(self, query: str) -> NDArray[np.float32]:
        """The vector of a question, of length 1: (width,)."""
        return np.asarray(_normalized(embed_checked(self._embedder.queries, [query]))[0], np.float32)

    def laid(self, sentences: Sequence[str]) -> LaidTexts:
        """Lay the sentences of a text out in windows of about `WINDOW_TOKENS` tokens."""
        each = [[number] * _estimated(text) for number, text in enumerate(sentences)]
        numbers = TokenizedSentences.of(each)
        ranges = [
            (int(numbers.ids[start]), int(numbers.ids[stop - 1]) + 1) for start, stop in numbers.windows()
        ]
        return LaidTexts(sentences, list(dict.fromkeys(ranges)))

    def read(self, laid: LaidTexts, after_step: AfterStep) -> SentenceVectors:
        """The vectors of the sentences; ``ValueError`` for NaN, infinity, or vectors of different widths."""
        own = self._embedded(list(laid.sentences), after_step)
        windows = ["".join(laid.sentences[slice(*window)]) for window in laid.windows]
        around = self._embedded(windows, after_step)
        context = np.zeros_like(own)
        for vector, (first, stop) in zip(around, laid.windows, strict=True):
            context[first:stop] += vector
        return SentenceVectors.of(own + _normalized(context))

    def _embedded(self, texts: list[str], after_step: AfterStep) -> NDArray[np.float32]:
        found: list[NDArray[np.float32]] = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = texts[first : first + _TEXTS_AT_ONCE]
            with self._lock:
                known = {text: self._kept[text] for text in batch if text in self._kept}
            missing = [text for text in dict.fromkeys(batch) if text not in known]
            if missing:
                width = len(found[0]) if found else None
                vectors = embed_checked(self._embedder.passages, missing, width)
                known |= zip(missing, _normalized(vectors), strict=True)
            with self._lock:
                self._kept.update(known)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            found += [known[text] for text in batch]
            after_step(sum(map(_estimated, batch)))
        return np.stack(found) if found else np.empty((0, 0), np.float32)


def _estimated(text: str) -> int:
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def _normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)
