"""The texts of a corpus, and what is prepared of them for every question."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.block_units import units_of_blocks
from spscanner_rag.retrieval.held_vectors import HeldVectors, digest_of_units
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.prepared_texts import key_of, prepared_text, values_of
from spscanner_rag.retrieval.stored_texts import STORED_ARRAY_PREFIX, StoredTexts
from spscanner_rag.retrieval.token_estimate import estimated_tokens
from spscanner_rag.retrieval.vector_arrays import VECTOR_ARRAY_PREFIX
from spscanner_rag.scorers import Cancelled, PreparedText, Scorer, never, stop_if
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

if TYPE_CHECKING:  # these import torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors

_LOGGER = logging.getLogger(__name__)

TextsDone = Callable[[int, int], None]
"""Called with the numbers of texts that are prepared, and of all."""


class HeldTexts:
    """The joined texts of a corpus, their words, and what scorers prepare of them.

    Immutable but for what is prepared: `with_texts` returns the texts after a change.
    Sentences are counted as `SentenceSegmenter` cuts them, so that no scorer is loaded.

    A pickle has the counts and vectors but not the texts, which their owner joins
    again; `with_texts` then counts nothing twice.

    Parameters
    ----------
    texts : sequence of JoinedText
        The texts.
    counts : CollectionIndex, optional
        Counts of their words, by `text_keys`.
    vectors : HeldVectors, optional
        The vectors of their sentences, by `text_keys`.
    stored : StoredTexts, optional
        What a folder has of them, by `text_keys`.

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
        vectors: HeldVectors | None = None,
        stored: StoredTexts | None = None,
    ) -> None:
        self.texts = texts
        self.keys = text_keys(texts)
        self.tokens = [estimated_tokens(joined.text) for joined in texts]
        self.counts = CollectionIndex() if counts is None else counts
        self.vectors = HeldVectors() if vectors is None else vectors
        self.stored = StoredTexts() if stored is None else stored
        self._key_of_digest: dict[str, str] = {}
        for joined, text_key in zip(texts, self.keys, strict=True):
            self._key_of_digest.setdefault(joined.digest, text_key)

    @property
    def collection(self) -> CollectionIndex | None:
        """The counts that make scores comparable between texts, None for one text."""
        return self.counts if len(self.texts) > 1 else None

    def with_texts(self, texts: Sequence[JoinedText]) -> "HeldTexts":
        """Return these texts with what is known of them, and count the new ones."""
        held_texts = HeldTexts(texts, self.counts.copy(), None, self.stored)
        present = set(held_texts.keys)
        held_texts.vectors = self.vectors.of_texts(present)
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
        return HeldTexts, ((), self.counts, self.vectors)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def prepared(
        self, scorer: Scorer, joined: JoinedText, cancelled: Cancelled = never
    ) -> PreparedText:
        """Return a text as a scorer prepares it.

        What is kept of it in memory or in the folder is not made again. A text that is
        not among these is prepared too.
        """
        text_key = self._key_of_digest.get(joined.digest)
        if text_key is None:
            return prepared_text(scorer, joined, cancelled)
        values = values_of(scorer)
        prepared = values.get(key_of(joined))
        if prepared is None:
            prepared = self._restored(scorer, joined, text_key)
            if prepared is not None:
                values.put(key_of(joined), prepared, prepared.nbytes)
        if prepared is None:
            self._hand_vectors(scorer, joined, text_key)
            prepared = prepared_text(scorer, joined, cancelled)
        meaning = scorer.meaning
        if meaning is not None and prepared.vectors is not None:
            self.vectors.put(text_key, meaning, prepared.vectors, prepared.units)
        return prepared

    def prepare(
        self,
        scorer: Scorer,
        numbers: Iterable[int],
        cancelled: Cancelled = never,
        progress: TextsDone | None = None,
    ) -> None:
        """Prepare some texts, and make the vectors that they lack."""
        numbers = list(numbers)
        for n_done, number in enumerate(numbers):
            if progress is not None:
                progress(n_done, len(numbers))
            self.vectors_of(number, scorer, cancelled)
        if progress is not None:
            progress(len(numbers), len(numbers))

    def vectors_of(
        self, number: int, scorer: Scorer, cancelled: Cancelled = never
    ) -> "SentenceVectors | None":
        """Return the vectors of a text, made where there are none of this encoder.

        None if the scorer has no encoder.
        """
        meaning = scorer.meaning
        if meaning is None:
            return None
        text_key = self.keys[number]
        vectors = self.vectors.get(text_key, meaning)
        if vectors is None:
            stop_if(cancelled, f"after {len(self.vectors)} texts were encoded")
            prepared = self.prepared(scorer, self.texts[number], cancelled)
            vectors = prepared.vectors
            if vectors is None:  # of a scorer that prepares less than it could
                sentences = [unit.model_text for unit in prepared.units]
                vectors = meaning.vectors(
                    sentences, after_step=lambda tokens: stop_if(cancelled)
                )
            self.vectors.put(text_key, meaning, vectors, prepared.units)
        return vectors

    def meaning_logits(
        self,
        query: str,
        scorer: Scorer,
        numbers: Iterable[int],
        cancelled: Cancelled = never,
    ) -> dict[int, float]:
        """For some texts, the logit of the best sentence by its meaning alone.

        Texts are left out for which the scorer has no encoder of their language and the
        question's.
        """
        meaning = scorer.meaning
        best_logits: dict[int, float] = {}
        if meaning is None:
            return best_logits
        for number in numbers:
            vectors = self.vectors_of(number, scorer, cancelled)
            assert vectors is not None, "the scorer has an encoder"
            question_meaning = meaning.of_question(query, vectors)
            if question_meaning is None:
                continue
            if not question_meaning.would_make(vectors) and vectors.encoder:
                prepared = self.prepared(scorer, self.texts[number], cancelled)
                sentences = [unit.model_text for unit in prepared.units]
                vectors = question_meaning.own_vectors(vectors, sentences)
            cosines = question_meaning.cosines(query, vectors)
            logits = question_meaning.weights.logits(np.zeros_like(cosines), cosines)
            best_logits[number] = float(logits.max(initial=-np.inf))
        return best_logits

    def with_prepared(self, scorer: Scorer) -> "HeldTexts":
        """Return these texts with everything that a folder keeps of them.

        All texts are prepared for this scorer, and all vectors are made.
        """
        arrays: dict[str, Mapping[str, NDArray[Any]]] = {}
        preparation = scorer.preparation
        for number, text_key in enumerate(self.keys):
            self.vectors_of(number, scorer)
            if preparation is not None:
                prepared = self.prepared(scorer, self.texts[number])
                arrays[text_key] = scorer.arrays_of(prepared)
        stored = StoredTexts.of(preparation or "", arrays)
        return HeldTexts(self.texts, self.counts, self.vectors, stored)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return counts, vectors and stored texts for `from_arrays`."""
        arrays = self.counts.to_arrays() | self.vectors.to_arrays()
        return arrays | self.stored.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "HeldTexts":
        """Restore counts, vectors and stored texts, without the texts themselves.

        ``ValueError`` for arrays that do not fit together.
        """
        of_counts: dict[str, NDArray[Any]] = {}
        of_vectors: dict[str, NDArray[Any]] = {}
        of_texts: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            if name.startswith(VECTOR_ARRAY_PREFIX):
                of_vectors[name] = array
            elif name.startswith(STORED_ARRAY_PREFIX):
                of_texts[name] = array
            else:
                of_counts[name] = array
        counts = CollectionIndex.from_arrays(of_counts)
        vectors = HeldVectors.from_arrays(of_vectors)
        return cls((), counts, vectors, StoredTexts.from_arrays(of_texts))

    def _restored(
        self, scorer: Scorer, joined: JoinedText, text_key: str
    ) -> PreparedText | None:
        """A text from what the folder has of it, or None if that does not do."""
        arrays = self.stored.arrays_of(text_key, scorer.preparation)
        if arrays is None:
            return None
        vectors = None
        if scorer.meaning is not None:
            vectors = self.vectors.get(text_key, scorer.meaning)
            if vectors is None:
                return None
        try:
            return scorer.restore(joined.text, arrays, vectors)
        except ValueError as error:
            _LOGGER.warning("a text of the folder is prepared again: %s", error)
            return None

    def _hand_vectors(self, scorer: Scorer, joined: JoinedText, text_key: str) -> None:
        """Let an encoder have the vectors of a text, if they are of these sentences.

        It then does not read the text again.
        """
        meaning = scorer.meaning
        if meaning is None:
            return
        vectors = self.vectors.get(text_key, meaning)
        if vectors is None:
            return
        units = units_of_blocks(scorer.units_of, joined)
        digest = digest_of_units(units)
        digest_of_vectors = self.vectors.digests.get(text_key)
        if digest_of_vectors is None:  # of a folder without digests
            digest_of_vectors = digest_of_units(self._units_of(joined))
        if digest == digest_of_vectors and len(vectors.rows) == len(units):
            meaning.cache.put(digest, vectors)

    def _model_texts(self, number: int) -> list[str]:
        return [unit.model_text for unit in self._units_of(self.texts[number])]

    @staticmethod
    def _units_of(joined: JoinedText) -> Sequence[Unit]:
        return units_of_blocks(SentenceSegmenter().segment, joined)


def text_keys(texts: Sequence[JoinedText]) -> list[str]:
    """The digest of each text, numbered where texts repeat."""
    keys: list[str] = []
    copies: dict[str, int] = {}
    for joined in texts:
        text_key = joined.digest
        copies[text_key] = copies.get(text_key, 0) + 1
        keys.append(
            text_key if copies[text_key] == 1 else f"{text_key}#{copies[text_key]}"
        )
    return keys
