"""Make a table of word vectors: the frequent words of texts, each embedded alone by an embedding model."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.embedders import Embed, embed_checked
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.documents import (
    QUESTION_SUFFIXES,
    TEXT_SUFFIXES,
    read_texts,
    refuse_other_files,
)
from spscanner_rag.lexical.word_vectors import MOST_DIMENSIONS, WordVectors
from spscanner_rag.lexical.words import index_words

WORDS, DIMENSIONS = 44_000, 96
"""Of the bundled table: 4.8 MB, what fits into the package. Recall is the same with more of either."""


def check_request(paths: Sequence[Path], most_words: int = WORDS, dimensions: int = DIMENSIONS) -> None:
    """Raise the errors of `make_word_vectors` that need neither the files' content nor a model."""
    if not paths:
        raise ValueError("no files to count words in; give at least one")
    if most_words < 1:
        raise ValueError(f"words is {most_words}; expected at least 1")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ValueError(f"dimensions is {dimensions}; expected 1 to {MOST_DIMENSIONS}")
    refuse_other_files(paths, (*TEXT_SUFFIXES, *QUESTION_SUFFIXES))


def make_word_vectors(
    paths: Sequence[Path],
    embed: Embed,
    most_words: int = WORDS,
    dimensions: int = DIMENSIONS,
    source: str = "",
    notify: Notify = lambda message: None,
) -> WordVectors:
    """Count the words of files, embed the most frequent ones and reduce their vectors.

    Plain texts (``.txt``, ``.txt.gz``, ``.txt.xz``) and question files, whose texts and questions both count.
    ``embed`` makes (texts, width) of a list; ``dimensions`` are at most `MOST_DIMENSIONS`, the width and the
    number of words. ``source`` says where the embedding model is from, and its licence.
    """
    check_request(paths, most_words, dimensions)
    notify(f"counting the words of {len(paths)} files")
    words = frequent_words(chain.from_iterable(map(read_texts, paths)), most_words)
    if len(words) < dimensions:
        raise ValueError(
            f"the files have {len(words)} different words; expected at least as many as dimensions,"
            f" {dimensions}: add texts, or lower it"
        )
    notify(f"embedding {len(words):,} words")
    embedded = embed_checked(embed, words)  # (words, width)
    if embedded.shape[1] < dimensions:
        raise ValueError(
            f"dimensions is {dimensions}, the embedding has {embedded.shape[1]}; expected at most that many"
        )
    return WordVectors.of_vectors(words, reduced(embedded, dimensions), source)


def frequent_words(documents: Iterable[Document], most: int) -> list[str]:
    """The ``most`` most frequent lowercase words of documents and questions, equals in alphabetical order."""
    counts: Counter[str] = Counter()
    for document in documents:
        found = index_words([document.text, *(question.text for question in document.questions)])
        times = np.bincount(found.numbers, minlength=len(found.vocabulary))
        counts.update(dict(zip(found.vocabulary, times.tolist(), strict=True)))
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def reduced(vectors: NDArray[np.float32], dimensions: int) -> NDArray[np.float32]:
    """Directions of vectors, (words, width), from their mean, along their principal axes: (words, dimensions).

    An embedding model's vectors of single words have much in common, which says nothing about any of them.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors.astype(np.float64) / np.maximum(lengths, np.finfo(np.float32).tiny)
    directions -= directions.mean(axis=0)
    _, axes = np.linalg.eigh(directions.T @ directions)  # (width, width), the least variance first
    return np.asarray(directions @ axes[:, ::-1][:, :dimensions], np.float32)
