"""The texts of a corpus, with counts of their words and vectors of their sentences."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.block_units import units_of_blocks
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.token_estimate import estimated_tokens
from spscanner_rag.retrieval.vector_arrays import (
    VECTOR_ARRAY_PREFIX,
    vectors_from_arrays,
    vectors_to_arrays,
)
from spscanner_rag.scorers import Cancelled, never, stop_if
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.segmentation import SentenceSegmenter

if TYPE_CHECKING:  # these import torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors


class HeldTexts:
    """The joined texts of a corpus, and what is known of them for a first stage.

    Immutable but for vectors that are added: `with_texts` returns the texts after a
    change. Sentences are counted as `SentenceSegmenter` cuts them, so that no scorer is
    loaded.

    A pickle has the counts but not the texts, which their owner joins again;
    `with_texts` then counts nothing twice.

    Parameters
    ----------
    texts : sequence of JoinedText
        The texts.
    counts : CollectionIndex, optional
        Counts of their words, by `text_keys`.
    encoder : str
        Digest of the encoder that made the vectors.
    vectors : mapping, optional
        Key of a text → vectors of its sentences.

    Examples
    --------
    >>> from spscanner_rag.retrieval import Piece, join_pieces
    >>> stories = ["Cut the leek.", "The viper sleeps."]
    >>> pieces = [
    ...     Piece(text=text, key=text, source=text, start=0) for text in stories
    ... ]
    >>> held_texts = HeldTexts().with_texts(join_pieces(pieces))
    >>> held_texts.tokens
    [4, 5]
    >>> [number for number, score in held_texts.ranking("a sleeping viper")]
    [1]
    """

    def __init__(
        self,
        texts: Sequence[JoinedText] = (),
        counts: CollectionIndex | None = None,
        encoder: str = "",
        vectors: "Mapping[str, SentenceVectors] | None" = None,
    ) -> None:
        self.texts = texts
        self.keys = text_keys(texts)
        self.tokens = [estimated_tokens(joined.text) for joined in texts]
        self.counts = CollectionIndex() if counts is None else counts
        self.encoder = encoder
        self.vectors = dict(vectors or {})
        # Key of a text -> digest of its sentences, so that a text is cut only once.
        self._digests: dict[str, str] = {}

    @property
    def collection(self) -> CollectionIndex | None:
        """The counts that make scores comparable between texts, None for one text."""
        return self.counts if len(self.texts) > 1 else None

    def with_texts(self, texts: Sequence[JoinedText]) -> "HeldTexts":
        """Return these texts with what is known of them, and count the new ones."""
        held_texts = HeldTexts(texts, self.counts.copy(), self.encoder)
        present = set(held_texts.keys)
        for text_key, vectors in self.vectors.items():
            if text_key in present:
                held_texts.vectors[text_key] = vectors
        held_texts.counts.remove(
            *(text_key for text_key in self.counts.keys if text_key not in present)
        )
        if len(texts) > 1:
            held_texts.count_words()
        return held_texts

    def count_words(self) -> None:
        """Count the words of texts that are not counted yet."""
        for number, text_key in enumerate(self.keys):
            if text_key not in self.counts:
                self.counts.add(text_key, self._model_texts(number))

    def ranking(self, query: str) -> list[tuple[int, float]]:
        """Rank by words: index and score of each text with a word of the query."""
        numbers = {text_key: number for number, text_key in enumerate(self.keys)}
        return [
            (numbers[text_key], score)
            for text_key, score in self.counts.best_texts(query)
        ]

    def __reduce__(self) -> tuple[type["HeldTexts"], tuple[object, ...]]:
        return HeldTexts, ((), self.counts, self.encoder, self.vectors)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def has_vectors(self, number: int, meaning: "Meaning") -> bool:
        """Tell whether a text has vectors, made by this encoder."""
        made_by_it = self.encoder == meaning.encoder.digest
        return made_by_it and self.keys[number] in self.vectors

    def encode(
        self, meaning: "Meaning", numbers: Iterable[int], cancelled: Cancelled = never
    ) -> None:
        """Make the vectors that some texts lack, and give those of all to ``meaning``.

        A scan with ``meaning`` then encodes none of these texts again.
        """
        from spscanner_rag.encoder.sentence_vectors import digest_of

        for number in numbers:
            vectors = self._vectors(number, meaning, cancelled)
            text_key = self.keys[number]
            if text_key not in self._digests:
                self._digests[text_key] = digest_of(self._sentences(number))
            meaning.cache.put(self._digests[text_key], vectors)

    def meaning_logits(
        self,
        query: str,
        meaning: "Meaning",
        numbers: Iterable[int],
        cancelled: Cancelled = never,
    ) -> dict[int, float]:
        """For some texts, the logit of the best sentence by its meaning alone."""
        best_logits = {}
        for number in numbers:
            cosines = meaning.cosines(query, self._vectors(number, meaning, cancelled))
            logits = meaning.weights.logits(np.zeros_like(cosines), cosines)
            best_logits[number] = float(logits.max(initial=-np.inf))
        return best_logits

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return counts and vectors as arrays that `from_arrays` reads back."""
        return self.counts.to_arrays() | vectors_to_arrays(self.encoder, self.vectors)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "HeldTexts":
        """Restore counts and vectors, without the texts.

        ``ValueError`` for arrays that do not fit together.
        """
        of_counts: dict[str, NDArray[Any]] = {}
        of_vectors: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            if name.startswith(VECTOR_ARRAY_PREFIX):
                of_vectors[name] = array
            else:
                of_counts[name] = array
        counts = CollectionIndex.from_arrays(of_counts)
        encoder, vectors = vectors_from_arrays(of_vectors)
        return cls((), counts, encoder, vectors)

    def _vectors(
        self, number: int, meaning: "Meaning", cancelled: Cancelled
    ) -> "SentenceVectors":
        """The vectors of a text, made where there are none of this encoder."""
        if self.encoder != meaning.encoder.digest:
            self.encoder = meaning.encoder.digest
            self.vectors = {}
        text_key = self.keys[number]
        if text_key not in self.vectors:
            stop_if(cancelled, f"after {len(self.vectors)} texts were encoded")
            self.vectors[text_key] = meaning.vectors(
                self._sentences(number), after_step=lambda tokens: stop_if(cancelled)
            )
        return self.vectors[text_key]

    def _sentences(self, number: int) -> Sequence[str]:
        return fold_texts(self._model_texts(number))

    def _model_texts(self, number: int) -> list[str]:
        units = units_of_blocks(SentenceSegmenter().segment, self.texts[number])
        return [unit.model_text for unit in units]


def text_keys(texts: Sequence[JoinedText]) -> list[str]:
    """A digest of each text and the starts of its runs, numbered where texts repeat."""
    keys: list[str] = []
    copies: dict[str, int] = {}
    for joined in texts:
        digest = sha256(joined.text.encode("utf-8", "surrogatepass"))
        digest.update(repr([run.start for run in joined.runs[1:]]).encode())
        text_key = digest.hexdigest()[:32]
        copies[text_key] = copies.get(text_key, 0) + 1
        keys.append(
            text_key if copies[text_key] == 1 else f"{text_key}#{copies[text_key]}"
        )
    return keys
