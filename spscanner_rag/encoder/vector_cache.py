"""Keeps the vectors of texts for later questions, within the bound of the process.

Two threads do not read the same text at once. They read different texts at once, a
short one beside a long one.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from spscanner_rag.encoder.sentence_encoder import Step
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.system.kept_values import KeptValues

_WAIT_SECONDS = 0.025
_TEXTS_READ_AT_ONCE = 64  # number of locks, of which each text has one


class VectorStore(Protocol):
    """Keeps vectors outside the process."""

    def get(self, encoder: str, key: str) -> SentenceVectors | None:
        """Return the vectors of sentences, if they are kept.

        Parameters
        ----------
        encoder : str
            The digest of the encoder that made them.
        key : str
            The digest of the sentences.
        """

    def put(self, encoder: str, key: str, vectors: SentenceVectors) -> None:
        """Keep the vectors of sentences."""


class VectorCache:
    """The vectors of the texts that were used last, by the digests of their sentences.

    Thread-safe.

    Parameters
    ----------
    encoder : str
        The digest of the encoder that makes them.
    """

    def __init__(self, encoder: str) -> None:
        self.store: VectorStore | None = None  # is consulted before a text is read
        self._encoder = encoder
        self._kept = KeptValues[SentenceVectors]()

    def get(self, key: str, n_sentences: int) -> SentenceVectors | None:
        """Return the vectors kept here or in the store, if any."""
        vectors = self._kept.get(key)
        if vectors is not None or self.store is None:
            return vectors
        vectors = self.store.get(self._encoder, key)
        if vectors is None or len(vectors.rows) != n_sentences:
            return None
        vectors = vectors._replace(encoder=self._encoder)
        self.put(key, vectors)
        return vectors

    def put(self, key: str, vectors: SentenceVectors) -> None:
        """Keep the vectors of a text, as long as the process has room for them."""
        self._kept.put(key, vectors, vectors.nbytes)

    def put_everywhere(self, key: str, vectors: SentenceVectors) -> None:
        """Keep the vectors of a text here and in the store."""
        if self.store is not None:
            self.store.put(self._encoder, key, vectors)
        self.put(key, vectors)


_reading_locks: list[threading.RLock]


def _make_locks() -> None:
    """Make new locks: in a forked child, no thread holds one."""
    global _reading_locks
    _reading_locks = [threading.RLock() for _ in range(_TEXTS_READ_AT_ONCE)]


_make_locks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_locks)


@contextmanager
def only_reader_of(key: str, after_step: Step) -> Iterator[None]:
    """Keep other threads from reading the text with a digest.

    This thread may read it again, if its ``after_step`` asks for it.
    """
    lock = _reading_locks[int(key, 16) % len(_reading_locks)]
    while not lock.acquire(timeout=_WAIT_SECONDS):
        after_step(0)  # the thread that reads may need what this one holds
    try:
        yield
    finally:
        lock.release()
