"""The words of a collection: how often each unit of many texts contains each word, for statistics and search."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import (
    REACH,
    Postings,
    best_of_texts,
    check,
    kept_texts,
    merged,
)
from spscanner_rag.lexical.match import LexicalStatistics, MatchOptions, lexical_scores
from spscanner_rag.lexical.words import (
    QueryOnWords,
    Stems,
    TextWords,
    WordVectors,
    index_words,
    query_stems,
    rows_of,
)
from spscanner_rag.text.languages import ENGLISH, LANGUAGES

N_SCORES = 1 + len(REACH)

_AROUND = MatchOptions(surroundings=True)


def _best_units(asked: QueryOnWords) -> list[tuple[int, float]]:
    """The texts that share a word with a query, by number, each with the score of its best unit."""
    scores = lexical_scores(asked, _AROUND)
    best = best_of_texts(
        scores.counts, np.sum(scores.standardized(), axis=0) / N_SCORES
    )
    matched = np.unique(
        np.searchsorted(scores.counts.text_starts, scores.counts.units, side="right")
        - 1
    )
    return list(zip(matched.tolist(), best[matched].tolist(), strict=True))


class CollectionIndex:
    """Counts the words of every unit of a collection, and gives the statistics of a query. Thread-safe.

    It takes 6 bytes per distinct word of a unit, 4 per unit and, in Python objects,
    some 200 per vocabulary word.
    """

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._stems = {
            ENGLISH: Stems(ENGLISH)
        }  # those of other languages are made when needed
        self._languages: dict[
            str, str
        ] = {}  # key of a text -> its language, in order of the texts
        self._postings = merged([])
        self._pending: list[
            Postings
        ] = []  # of the last texts; merged when the index is used
        self._rows: tuple[WordVectors, NDArray[np.int32]] | None = (
            None  # rows of the vocabulary's words
        )
        self._lock = threading.RLock()

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Self:
        """Index texts, each given as the ``model_text`` of its units.

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
                self._postings, self._pending = (
                    merged([self._postings, *self._pending]),
                    [],
                )
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

    def add(self, key: str, model_texts: Sequence[str]) -> None:
        """Add a text, given the ``model_text`` of its units in order.

        ``ValueError`` for a key that is in use.
        """
        self.add_words(key, index_words(model_texts))

    def add_words(self, key: str, words: TextWords) -> None:
        """Add a text whose words are already indexed; errors are those of `add`."""
        with self._lock:
            if key in self._languages:
                raise ValueError(
                    f"the collection already has a text {key!r:.80}; remove it first"
                )
            self._learn(words.vocabulary)
            numbers = np.array(
                [self._vocabulary[word] for word in words.vocabulary], np.int32
            )
            self._pending.append(
                words.postings._replace(words=numbers[words.postings.words])
            )
            self._languages[key] = words.language

    def copy(self) -> Self:
        """An index of the same texts, which later changes to this one do not affect.

        The counts are shared.
        """
        other = type(self)()
        with self._lock:
            other._postings, other._pending = self._postings, list(self._pending)
            # The vocabulary only grows, so both share one, under one lock.
            other._vocabulary, other._stems, other._lock = (
                self._vocabulary,
                self._stems,
                self._lock,
            )
            other._languages = dict(self._languages)
        return other

    def remove(self, *keys: str) -> None:
        """Remove texts; ``KeyError`` for an unknown key, and then nothing is removed."""
        gone = set(keys)
        with self._lock:
            unknown = gone - self._languages.keys()
            if unknown:
                raise KeyError(f"the collection has no text {min(unknown)!r:.80}")
            kept = np.array([key not in gone for key in self._languages], bool)
            self._postings = kept_texts(self.postings, kept)
            self._languages = {
                key: own for key, own in self._languages.items() if key not in gone
            }

    @property
    def languages(self) -> list[str]:
        """The languages of the texts, one of `languages.LANGUAGES` each."""
        with self._lock:
            found = set(self._languages.values()) or {ENGLISH}
            return sorted(found, key=lambda language: (language != ENGLISH, language))

    def statistics(
        self, query: str, options: MatchOptions, language: str = ENGLISH
    ) -> LexicalStatistics:
        """Statistics of a query over all units, with the stems of a language, or English if no text has it."""
        language = language if language in self.languages else ENGLISH
        return lexical_scores(
            self.asked(query, options.vectors, language), options
        ).statistics

    def best_texts(self, query: str, top: int | None = None) -> list[tuple[str, float]]:
        """Keys and scores of the ``top`` texts that share a word with a query, best first, then oldest first.

        A text's score is that of its best unit: the mean of the z-scores of the BM25 of
        the unit and of its surroundings (3, 7, 17 units).
        """
        with self._lock:
            asked = [
                self.asked(query, language=language) for language in self.languages
            ]
            keys, languages = self.keys, dict(self._languages)
        found = (
            (-score, number)
            for each in asked
            for number, score in _best_units(each)
            if languages[keys[number]] == each.language
        )
        return [(keys[number], -score) for score, number in sorted(found)[:top]]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The index as plain arrays, for a file; `from_arrays` reads them."""
        with self._lock:
            postings = self.postings
            lists = {"vocabulary": list(self._vocabulary), "keys": self.keys}
            lists["languages"] = [self._languages[key] for key in lists["keys"]]
        encoded = {
            name: np.frombuffer(json.dumps(own).encode(), np.uint8)
            for name, own in lists.items()
        }
        return postings._asdict() | encoded

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Read what `to_arrays` made, without copying.

        ``ValueError`` if an array is missing or does not fit.
        """
        lists = ("vocabulary", "keys", "languages")
        missing = sorted({*Postings._fields, *lists} - set(arrays))
        if missing:
            raise ValueError(
                f"the index has no {missing[0]!r}; expected what"
                " CollectionIndex.to_arrays made"
            )
        postings = Postings(*(arrays[name] for name in Postings._fields))
        vocabulary, keys, languages = (_decoded(name, arrays[name]) for name in lists)
        check(postings, len(vocabulary), len(keys))
        unknown = sorted({*languages} - {*LANGUAGES})
        if unknown or len(languages) != len(keys):
            raise ValueError(
                f"the index has {len(languages)} languages for {len(keys)} texts,"
                f" unknown: {unknown!r:.40}; expected one of {', '.join(LANGUAGES)} for"
                " each: make it again"
            )
        index = cls()
        index._learn(vocabulary)
        index._languages, index._postings = (
            dict(zip(keys, languages, strict=True)),
            postings,
        )
        if (len(index._vocabulary), len(index._languages)) != (
            len(vocabulary),
            len(keys),
        ):
            raise ValueError(
                "the index names a word or a text twice; it is damaged: make it again"
            )
        return index

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return type(self).from_arrays, (self.to_arrays(),)

    def asked(
        self, query: str, vectors: WordVectors | None = None, language: str = ENGLISH
    ) -> QueryOnWords:
        """A query on all current texts, which later changes do not affect, with the stems of a language."""
        with self._lock:
            postings, vocabulary = self.postings, list(self._vocabulary)
            known = self._stems.setdefault(language, Stems(language))
            known.learn(vocabulary[known.n_words :])
            of_stem = {
                stem: list(known.get(stem, ())) for stem in query_stems(query, language)
            }
            rows = None
            if vectors is not None and language == ENGLISH:
                if (
                    self._rows is None
                    or self._rows[0] is not vectors
                    or len(self._rows[1]) < len(vocabulary)
                ):
                    self._rows = vectors, rows_of(vectors, vocabulary)
                rows = self._rows[1]
            return QueryOnWords(query, postings, of_stem, vocabulary, rows, language)

    def _learn(self, words: Iterable[str]) -> None:
        new = [word for word in words if word not in self._vocabulary]
        self._stems[ENGLISH].learn(new)
        for word in new:
            self._vocabulary.setdefault(word, len(self._vocabulary))


def _decoded(name: str, array: NDArray[Any]) -> list[str]:
    try:
        strings = json.loads(bytes(array))
    except (ValueError, RecursionError):
        strings = None
    if not isinstance(strings, list) or not all(
        isinstance(string, str) for string in strings
    ):
        raise ValueError(
            f"{name} of the index is not a JSON list of strings; it is damaged: make it"
            " again"
        )
    return strings
