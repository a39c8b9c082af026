"""A query, and the words of the text or the collection that it is asked of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.postings import Postings
from spscanner_rag.lexical.query_counts import QueryCounts, count_stems
from spscanner_rag.lexical.word_vectors import UNKNOWN, WordVectors
from spscanner_rag.lexical.words import (
    Stems,
    TextWords,
    query_stems,
    query_words,
    stems_of,
)
from spscanner_rag.text.languages import ENGLISH, STOP_WORDS

# Bounds memory: 64 bytes for each distinct word of the collection.
_QUERY_WORDS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class QueryOnWords:
    """A query, and the words of a text or of a collection."""

    query: str
    postings: Postings
    of_stem: Mapping[str, Sequence[int]]  # numbers of the words with this stem
    vocabulary: Sequence[str]
    # (vocabulary,) in the word vectors, if they are already looked up
    rows: NDArray[np.int32] | None = None
    language: str = ENGLISH  # in which the query is cut and stemmed

    @classmethod
    def on_text(
        cls,
        query: str,
        words: TextWords,
        vectors: WordVectors | None = None,
        language: str | None = None,
    ) -> Self:
        """A query, and the words of one text.

        The stems are those of ``language``, by default the text's own.
        """
        language = language or words.language
        of_stem = words.of_stem
        if language != words.language:
            of_stem = Stems(language, words.vocabulary)
        rows = None
        if vectors is not None:
            rows = rows_of(vectors, words.vocabulary, language)
        return cls(query, words.postings, of_stem, words.vocabulary, rows, language)

    def columns(self) -> NDArray[np.int64]:
        """The index of each word's stem among the query's stems: (vocabulary,).

        It is -1 for a word whose stem the query does not have.
        """
        columns = np.full(len(self.vocabulary), -1, np.int64)
        for column, stem in enumerate(query_stems(self.query, self.language)):
            columns[self._words_with(stem)] = column
        return columns

    def counts(self) -> QueryCounts:
        """Count each stem of the query in each unit."""
        n_stems = len(query_stems(self.query, self.language))
        return count_stems(self.postings, self.columns(), n_stems)

    def similarities(
        self, vectors: WordVectors
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield similarities of the vocabulary to some query words at a time.

        Each comes with the index of the first of the query words. They are (vocabulary,
        some), and 1 for words of the same stem.
        """
        rows = self.rows
        if rows is None:
            rows = rows_of(vectors, self.vocabulary, self.language)
        words = query_words(self.query, self.language)
        query_rows = rows_of(vectors, words, self.language)
        stems = stems_of(list(words), self.language)
        for first in range(0, len(words), _QUERY_WORDS_AT_ONCE):
            some = slice(first, first + _QUERY_WORDS_AT_ONCE)
            similarities = vectors.similarities_of_rows(query_rows[some], rows)
            for column, stem in enumerate(stems[some]):
                similarities[self._words_with(stem), column] = 1
            yield first, similarities

    def _words_with(self, stem: str) -> NDArray[np.int64]:
        """Numbers of the vocabulary's words with a stem."""
        return np.asarray(self.of_stem.get(stem, ()), np.int64)


def rows_of(
    vectors: WordVectors, words: Sequence[str], language: str = ENGLISH
) -> NDArray[np.int32]:
    """Rows of lowercase words: (words,).

    Stop words and words of other languages than English are unknown.
    """
    if language != ENGLISH:
        return np.full(len(words), UNKNOWN, np.int32)
    return vectors.rows("" if word in STOP_WORDS else word for word in words)
