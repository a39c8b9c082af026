"""English is read by a checkpoint's own encoder, and other languages by another one."""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder, Step, ignore
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.vector_cache import VectorStore
from spscanner_rag.system.install_hints import install_line
from spscanner_rag.text.language_parts import UNKNOWN, is_english
from spscanner_rag.text.language_parts import question_language as language_of_question
from spscanner_rag.text.languages import ENGLISH

LoadEncoder = Callable[[], SentenceEncoder]
"""Returns the encoder of other languages."""

WITHOUT_ENCODER: Final = "none"
"""Stands in place of an encoder's digest for a text that no encoder could read."""

EXTRA: Final = "multilingual"

MULTILINGUAL_WEIGHTS: Final = MeaningWeights(
    scanner=0.0,
    sentence=45.0,
    words=4.5,
    length=0.225,
    asks=-3.0,
    heading=-1.0,
    handed=0.9,
    items=0.6,
    lead_in=0.6,
    bias=-40.3,
    mean=0.79,
    deviation=0.023,
    answer_scale=15.0,
    answer_bias=-38.0,
)
"""Those of multilingual-e5-small, whose cosines of unrelated texts are near 0.79, with
a deviation of 0.023. All words of a question count as much as 0.1 of a cosine. The best
sentence of a text about something else mostly stays below 0.845."""

_LOGGER = logging.getLogger(__name__)


class MeaningByLanguage(Meaning):
    """An English encoder, and one that reads whatever is not English.

    A question and a text that are both English are matched by the English encoder, with
    its cross-reader; all others by the multilingual one, which is loaded when it is
    first needed. Without it, such a question has no cosines, and a note says once what
    to install.

    Parameters
    ----------
    encoder, weights, cross
        As for `Meaning`, for English.
    load_multilingual : callable, optional
        Returns the other encoder. None if it is not installed.
    multilingual_weights : MeaningWeights, optional
        The weights of the other encoder's cosines.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        weights: MeaningWeights,
        *,
        cross: SentenceCrossReader | None = None,
        load_multilingual: LoadEncoder | None = None,
        multilingual_weights: MeaningWeights | None = None,
    ) -> None:
        super().__init__(encoder, weights, cross=cross)
        self._load = load_multilingual
        self._multilingual_weights = multilingual_weights or MULTILINGUAL_WEIGHTS
        self._loaded: Meaning | None = None
        self._store: VectorStore | None = None

    @property
    def multilingual(self) -> Meaning | None:
        """The encoder of other languages with its weights, loaded at the first use.

        None if it is not installed.
        """
        if self._load is None:
            _note_once()
            return None
        with _loading_lock:
            if self._loaded is None:
                self._loaded = Meaning(
                    self._load(), self._multilingual_weights, name=EXTRA
                )
                self._loaded.keep_in(self._store)
        return self._loaded

    @property
    def reads_other_languages(self) -> bool:
        """Whether there is an encoder of other languages.

        Loads nothing.
        """
        return self._load is not None

    def keep_in(self, store: VectorStore | None) -> None:
        """Keep all vectors in a store too."""
        super().keep_in(store)
        self._store = store
        if self._loaded is not None:
            self._loaded.keep_in(store)

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """Return the vectors of a text by the encoder of its language.

        They are zeros without a name of an encoder if that is not installed.
        """
        if is_english(sentences):
            return super().vectors(sentences, before, after_step)
        other = self.multilingual
        if other is not None:
            return other.vectors(sentences, before, after_step)
        width = len(self.question_vector(""))
        return SentenceVectors(
            np.zeros((len(sentences), width), np.int8),
            np.zeros(len(sentences), np.float16),
            WITHOUT_ENCODER,
        )

    def has_vectors(self, sentences: Sequence[str]) -> bool:
        """Return whether the vectors are kept, so that `vectors` reads nothing."""
        if is_english(sentences):
            return super().has_vectors(sentences)
        other = self.multilingual
        return other is None or other.has_vectors(sentences)

    def would_make(self, vectors: SentenceVectors) -> bool:
        """Return whether `vectors` would return such vectors."""
        if super().would_make(vectors):
            return True
        if self._load is None or vectors.encoder == WITHOUT_ENCODER:
            return self._load is None and vectors.encoder == WITHOUT_ENCODER
        other = self.multilingual
        return other is not None and other.would_make(vectors)

    def own_vectors(
        self,
        vectors: SentenceVectors,
        sentences: Sequence[str],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> SentenceVectors:
        """Return vectors, which are this encoder's if it is asked for them."""
        return vectors

    def reader_for(self, query: str) -> Meaning | None:
        """Return the encoder of other languages for a question in one of them.

        None for an English question, and without that encoder.
        """
        if _may_be_english(query):
            return None
        return self.multilingual

    def of_question(self, query: str, vectors: SentenceVectors) -> Meaning | None:
        """Return what matches a question with a text that has these vectors.

        None without an encoder of their languages.
        """
        of_english = vectors.encoder in ("", self.encoder.digest)
        if of_english and _may_be_english(query):
            return self
        return self.multilingual

    def __reduce__(self) -> tuple[Callable[..., Meaning], tuple[object, ...]]:
        rebuild = partial(
            MeaningByLanguage,
            cross=self.cross,
            load_multilingual=self._load,
            multilingual_weights=self._multilingual_weights,
        )
        return rebuild, (self.encoder, self.weights)


def _may_be_english(query: str) -> bool:
    return language_of_question(query) in (ENGLISH, UNKNOWN)


_loading_lock: threading.Lock
_noted = False


def _make_lock() -> None:
    """Make a new lock: in a forked child, no thread holds it."""
    global _loading_lock
    _loading_lock = threading.Lock()


_make_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_lock)


def _note_once() -> None:
    """Say, once in a process, what reads texts that are not in English."""
    global _noted
    if _noted:
        return
    _noted = True
    _LOGGER.warning(
        "a text or a question is not in English, and is matched by its words alone; an"
        " encoder of other languages: %s",
        install_line(EXTRA),
    )
