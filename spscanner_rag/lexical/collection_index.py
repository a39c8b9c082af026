"""The words of a collection: how often each unit of many texts contains each word.

`CollectionIndex` gives the statistics of a query, and finds texts.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.lexical_scores import (
    LexicalStatistics,
    MatchOptions,
    lexical_scores,
)
from spscanner_rag.lexical.postings import (
    Postings,
    check_postings,
    merge_postings,
    postings_of_texts,
)
from spscanner_rag.lexical.query_on_words import QueryOnWords, rows_of
from spscanner_rag.lexical.text_scores import best_of_texts
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import Stems, TextWords, index_words, query_stems
from spscanner_rag.text.languages import ENGLISH, LANGUAGES

N_SCORES = 1 + len(REACH)

_WITH_SURROUNDINGS = MatchOptions(surroundings=True)

# The lists of strings among the arrays of an index.
_LISTS = ("vocabulary", "keys", "languages")


class CollectionIndex:
    """Counts the words of every unit of a collection, for statistics and search.

    It is thread-safe. It takes 6 bytes per distinct word of a unit, 4 per unit and, in
    Python objects, some 200 per vocabulary word.

    Examples
    --------
    >>> index = CollectionIndex.of([["Ships leave. "], ["The keeper slept."]])
    >>> index.add("log", ["Nobody saw the ship."])
    >>> [key for key, score in index.best_texts("Which ship?")]
    ['0', 'log']
    """

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        # Those of other languages are made when they are first asked for.
        self._stems = {ENGLISH: Stems(ENGLISH)}
        # Key of a text -> its language, in order of the texts.
        self._languages: dict[str, str] = {}
        self._postings = merge_postings([])
        # Postings of the last texts, merged when the index is used.
        self._pending: list[Postings] = []
        # Rows of the vocabulary's words.
        self._rows: tuple[WordVectors, NDArray[np.int32]] | None = None
        self._lock = threading.RLock()

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Self:
        """Index texts, each as the ``model_text`` of its units.

        Their keys are "0", "1" and so on.
        """
        index = cls()
        for number, model_texts in enumerate(texts):
            index.add(str(number), model_texts)
        return index

    def __len__(self) -> int:
        return len(self._languages)

    def __contains__(self, key: object) -> bool:
        return key in self._languages

    @property
    def keys(self) -> list[str]:
        """Keys of the texts, in the order in which they were added."""
        with self._lock:
            return list(self._languages)

    @property
    def postings(self) -> Postings:
        """The current counts of all texts."""
        with self._lock:
            if self._pending:
                self._postings = merge_postings([self._postings, *self._pending])
                self._pending = []
            return self._postings

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return self.postings.n_units

    @property
    def vocabulary(self) -> list[str]:
        """All lowercase words that were ever counted, in the order of their numbers.

        New ones are appended.
        """
        with self._lock:
            return list(self._vocabulary)

    @property
    def languages(self) -> list[str]:
        """The languages of the texts, of `languages.LANGUAGES`, English first."""
        with self._lock:
            languages = set(self._languages.values()) or {ENGLISH}
        return sorted(languages, key=lambda language: (language != ENGLISH, language))

    def add(self, key: str, model_texts: Sequence[str]) -> None:
        """Add a text, as the ``model_text`` of its units in order.

        It raises ``ValueError`` for a key that is in use.
        """
        self.add_words(key, index_words(model_texts))

    def add_words(self, key: str, words: TextWords) -> None:
        """Add a text whose words are already indexed.

        The errors are those of `add`.
        """
        with self._lock:
            if key in self._languages:
                raise ValueError(
                    f"the collection already has a text {key!r:.80}; remove it first"
                )
            self._learn(words.vocabulary)
            numbers = [self._vocabulary[word] for word in words.vocabulary]
            number_array = np.array(numbers, np.int32)
            postings = words.postings
            renumbered = postings._replace(words=number_array[postings.words])
            self._pending.append(renumbered)
            self._languages[key] = words.language

    def remove(self, *keys: str) -> None:
        """Remove texts.

        It raises ``KeyError`` for an unknown key, and then removes nothing.
        """
        removed = set(keys)
        with self._lock:
            unknown = removed - self._languages.keys()
            if unknown:
                raise KeyError(f"the collection has no text {min(unknown)!r:.80}")
            stays = np.array([key not in removed for key in self._languages], bool)
            self._postings = postings_of_texts(self.postings, stays)
            languages = self._languages.items()
            self._languages = {
                key: language for key, language in languages if key not in removed
            }

    def copy(self) -> Self:
        """An index of the same texts, which later changes to this one do not affect.

        The counts are shared.
        """
        other = type(self)()
        with self._lock:
            # The vocabulary only grows, so both share one, under one lock.
            attributes = dict(vars(self))
            attributes["_pending"] = list(self._pending)
            attributes["_languages"] = dict(self._languages)
            vars(other).update(attributes)
        return other

    def statistics(
        self, query: str, options: MatchOptions, language: str = ENGLISH
    ) -> LexicalStatistics:
        """Statistics of a query over all units.

        The stems are those of a language, or of English if no text has it.
        """
        if language not in self.languages:
            language = ENGLISH
        query_on_words = self.query_on_words(query, options.vectors, language)
        return lexical_scores(query_on_words, options).statistics

    def best_texts(self, query: str, top: int | None = None) -> list[tuple[str, float]]:
        """Keys and scores of the ``top`` texts that share a word with a query.

        They come best first, then oldest first. A text's score is that of its best
        unit: the mean of the z-scores of the BM25 of the unit and of its surroundings
        (3, 7, 17 units).
        """
        with self._lock:
            queries = []
            for language in self.languages:
                queries.append(self.query_on_words(query, language=language))
            keys = self.keys
            languages = dict(self._languages)
        ranked = []
        for query_on_words in queries:
            for number, score in _best_units(query_on_words):
                if languages[keys[number]] == query_on_words.language:
                    ranked.append((-score, number))
        ranked.sort()
        return [(keys[number], -score) for score, number in ranked[:top]]

    def query_on_words(
        self, query: str, vectors: WordVectors | None = None, language: str = ENGLISH
    ) -> QueryOnWords:
        """A query on all current texts, which later changes do not affect.

        The stems are those of ``language``.
        """
        with self._lock:
            postings = self.postings
            vocabulary = list(self._vocabulary)
            stems = self._stems.setdefault(language, Stems(language))
            stems.learn(vocabulary[stems.n_words :])
            of_stem = {}
            for stem in query_stems(query, language):
                of_stem[stem] = list(stems.get(stem, ()))
            rows = None
            if vectors is not None and language == ENGLISH:
                rows = self._rows_of_vocabulary(vectors, vocabulary)
            return QueryOnWords(query, postings, of_stem, vocabulary, rows, language)

    def _rows_of_vocabulary(
        self, vectors: WordVectors, vocabulary: Sequence[str]
    ) -> NDArray[np.int32]:
        """Rows of the vocabulary's words, looked up once: (vocabulary,)."""
        if self._rows is not None:
            vectors_of_rows, rows = self._rows
            if vectors_of_rows is vectors and len(rows) >= len(vocabulary):
                return rows
        rows = rows_of(vectors, vocabulary)
        self._rows = (vectors, rows)
        return rows

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The index as plain arrays, for a file that `from_arrays` reads."""
        with self._lock:
            postings = self.postings
            vocabulary = list(self._vocabulary)
            keys = list(self._languages)
            languages = list(self._languages.values())
        arrays: dict[str, NDArray[Any]] = postings._asdict()
        for name, strings in zip(_LISTS, (vocabulary, keys, languages), strict=True):
            arrays[name] = np.frombuffer(json.dumps(strings).encode(), np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Read what `to_arrays` made, without copying.

        It raises ``ValueError`` if an array is missing or does not fit.
        """
        missing = sorted({*Postings._fields, *_LISTS} - set(arrays))
        if missing:
            raise ValueError(
                f"the index has no {missing[0]!r}; expected what"
                " CollectionIndex.to_arrays made"
            )
        postings = Postings(*(arrays[name] for name in Postings._fields))
        vocabulary, keys, languages = (_decoded(name, arrays[name]) for name in _LISTS)
        check_postings(postings, len(vocabulary), len(keys))
        unknown = sorted({*languages} - {*LANGUAGES})
        if unknown or len(languages) != len(keys):
            raise ValueError(
                f"the index has {len(languages)} languages for {len(keys)} texts,"
                f" unknown: {unknown!r:.40}; expected one of {', '.join(LANGUAGES)} for"
                " each: make it again"
            )
        if len(set(vocabulary)) < len(vocabulary) or len(set(keys)) < len(keys):
            raise ValueError(
                "the index names a word or a text twice; it is damaged: make it again"
            )
        index = cls()
        index._learn(vocabulary)
        index._languages = dict(zip(keys, languages, strict=True))
        index._postings = postings
        return index

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return type(self).from_arrays, (self.to_arrays(),)

    def _learn(self, words: Iterable[str]) -> None:
        new_words = [word for word in words if word not in self._vocabulary]
        self._stems[ENGLISH].learn(new_words)
        for word in new_words:
            self._vocabulary.setdefault(word, len(self._vocabulary))


def _best_units(query_on_words: QueryOnWords) -> list[tuple[int, float]]:
    """The texts that share a word with a query, each with its best unit's score.

    The texts are numbers.
    """
    scores = lexical_scores(query_on_words, _WITH_SURROUNDINGS)
    counts = scores.counts
    means = np.sum(scores.standardized(), axis=0) / N_SCORES
    best = best_of_texts(counts, means)
    text_of_pair = np.searchsorted(counts.text_starts, counts.units, side="right") - 1
    matched = np.unique(text_of_pair)
    return list(zip(matched.tolist(), best[matched].tolist(), strict=True))


def _decoded(name: str, array: NDArray[Any]) -> list[str]:
    try:
        decoded = json.loads(bytes(array))
    except (ValueError, RecursionError):
        decoded = None
    is_list = isinstance(decoded, list)
    if not is_list or not all(isinstance(string, str) for string in decoded):
        raise ValueError(
            f"{name} of the index is not a JSON list of strings; it is damaged: make it"
            " again"
        )
    strings: list[str] = decoded
    return strings
