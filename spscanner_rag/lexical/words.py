"""The words of a text or a query, their stems in the language of the text, and their vectors."""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
import Stemmer
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import Postings, QueryCounts, count_stems, text_postings
from spscanner_rag.text.folding import fold_texts, folded
from spscanner_rag.text.languages import (
    CJK,
    CJK_CHARACTER,
    ENGLISH,
    STOP_WORDS,
    STOP_WORDS_OF,
    language_of,
)

SIMILARITY_START: Final = 0.4
"""Two words whose cosine is at most this have nothing to do with each other: their
similarity is 0."""

SIMILARITY_POWER: Final = 2
"""The similarity rises from 0 at `SIMILARITY_START` to 1 at a cosine of 1 with this
power."""

MOST_DIMENSIONS: Final = 128
UNKNOWN: Final = -1  # the row of a word that is not in the table
_WORDS_AT_ONCE = 4096

_WORD = re.compile(r"\w+")
# In a run of Han and kana, a word of two characters begins at each character but the
# last; others are as usual. The word is the group that matched: one of two characters
# extends beyond its match.
_CJK_WORD = re.compile(
    rf"(?=([{CJK_CHARACTER}]{{2}})).|(?<![{CJK_CHARACTER}])([{CJK_CHARACTER}])|([^\W{CJK_CHARACTER}]+)"
)
_WORDS: Mapping[str | None, re.Pattern[str]] = {CJK: _CJK_WORD}


class WordVectors:
    """A table of words and their vectors of unit length: the row of ``vectors`` times its scale.

    ``words`` are in lower case, ``vectors`` (words, dimensions), int8, ``scales``
    (words,); ``source`` names what made them. ``ValueError`` for other arrays, an empty
    or repeated word, or a row without unit length.
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: NDArray[np.int8],
        scales: NDArray[np.floating],
        source: str = "",
    ) -> None:
        _check_arrays(words, vectors, scales)
        self.words: tuple[str, ...] = tuple(words)
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) < len(self.words) or "" in self._rows:
            raise ValueError(
                "a word is empty or there twice; expected every word once, none of them"
                " empty"
            )
        self.vectors = vectors
        self.scales = scales.astype(np.float32)
        self.source = source

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        """Its size and its source, for people."""
        made = f", made with {self.source}" if self.source else ""
        return f"{len(self):,} words of {self.dimensions} dimensions{made}"

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each word, given in lower case.

        `UNKNOWN` if it is not in the table: (words,).
        """
        return np.fromiter((self._rows.get(word, UNKNOWN) for word in words), np.int32)

    def of_rows(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Vectors of unit length in the given rows of the table: (rows, dimensions)."""
        vectors: NDArray[np.float32] = (
            self.vectors[rows].astype(np.float32) * self.scales[rows, None]
        )
        return vectors

    def similarities_of_rows(
        self, question_rows: NDArray[np.integer[Any]], rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.float32]:
        """Similarity of words in meaning, from 0 to 1, and 0 for unknown words: (rows, question rows)."""
        similar = np.zeros((len(rows), len(question_rows)), np.float32)
        asked, known = np.flatnonzero(question_rows >= 0), np.flatnonzero(rows >= 0)
        if not len(asked):
            return similar
        question = self.of_rows(
            question_rows[asked]
        ).T  # (dimensions, known question words)
        for start in range(0, len(known), _WORDS_AT_ONCE):
            some = known[start : start + _WORDS_AT_ONCE]
            values = (
                self.of_rows(rows[some]) @ question
            )  # (some words, known question words)
            values = np.clip(
                (values - SIMILARITY_START) * (1 / (1 - SIMILARITY_START)), 0, 1
            )  # at most 1
            similar[np.ix_(some, asked)] = values**SIMILARITY_POWER
        return similar

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The table as arrays, for a file; `from_arrays` reads it back."""
        texts = "\n".join(self.words), self.source
        words, source = (np.frombuffer(text.encode(), np.uint8) for text in texts)
        return {
            "words": words,
            "vectors": self.vectors,
            "scales": self.scales,
            "source": source,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "WordVectors":
        """Read the arrays of `to_arrays`; raises ``ValueError`` for others."""
        if arrays.keys() | {"source"} != {"words", "vectors", "scales", "source"}:
            raise ValueError(
                f"arrays {', '.join(sorted(arrays))}; expected scales, source, vectors"
                " and words"
            )
        words = _text_of("words", arrays["words"])
        source = _text_of("source", arrays["source"]) if "source" in arrays else ""
        return cls(
            words.split("\n") if words else [],
            arrays["vectors"],
            arrays["scales"],
            source,
        )


def _text_of(name: str, stored: NDArray[Any]) -> str:
    """The text of an array of bytes.

    ``ValueError``, which names the array, for any other.
    """
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ValueError(
            f"{name} is {stored.dtype} of shape {stored.shape}; expected bytes: uint8,"
            " one row"
        )
    try:
        return stored.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: {error}; expected UTF-8") from None


def _check_arrays(
    words: Sequence[str], vectors: NDArray[np.int8], scales: NDArray[np.floating]
) -> None:
    if (
        vectors.dtype != np.int8
        or vectors.ndim != 2
        or not 1 <= vectors.shape[1] <= MOST_DIMENSIONS
    ):
        raise ValueError(
            f"vectors is {vectors.dtype} of shape {vectors.shape}; expected int8,"
            f" (words, 1 to {MOST_DIMENSIONS} dimensions)"
        )
    if (
        scales.dtype.kind != "f"
        or scales.ndim != 1
        or not len(words) == len(vectors) == len(scales)
    ):
        raise ValueError(
            f"scales is {scales.dtype} of shape {scales.shape}, of {len(words)} words,"
            f" {len(vectors)} vectors and {len(scales)} scales; expected"
            " floating-point, (words,), and equally many"
        )
    # float16 scales are exact to one part in 2,000
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1) * scales.astype(
        np.float32
    )
    if not (np.abs(lengths - 1) < 0.01).all():  # NaN compares as false
        odd = int(np.argmin(np.abs(lengths - 1) < 0.01))
        raise ValueError(
            f"the vector of {words[odd]!r} has length {lengths[odd]}; expected 1: NaN,"
            " infinity or a wrong scale"
        )


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of one text, indexed once for all queries.

    Lowercase words are numbered as they first appear.
    """

    starts: NDArray[np.int64]  # (words,) character positions in the joined model text
    ends: NDArray[np.int64]  # (words,)
    numbers: NDArray[
        np.int32
    ]  # (words,) number of each lowercase word in the vocabulary
    vocabulary: Sequence[str]  # the lowercase words
    of_stem: Mapping[str, Sequence[int]]  # numbers of the words with this stem
    postings: Postings  # which units the words begin in
    language: str = ENGLISH  # of `languages.language_of`


_QUERY_WORDS_AT_ONCE = (
    16  # bounds memory: 64 bytes for each distinct word of the collection
)
_PIECE_CHARACTERS = 131_072  # indexed in some 10 ms


def index_words(
    model_texts: Sequence[str],
    language: str | None = None,
    between_pieces: Callable[[], None] = lambda: None,
    fold: bool = True,
) -> TextWords:
    """Index the words of a text, given the ``model_text`` of its units.

    By default, detect the language from them.

    They are folded unless ``fold`` is false; in `languages.CJK`, any two neighbouring
    characters are a word. ``between_pieces`` is called about every `_PIECE_CHARACTERS`,
    and may raise.
    """
    starts, ends, numbers, words_per_unit = (
        array("q"),
        array("q"),
        array("i"),
        array("q"),
    )
    vocabulary: dict[str, int] = {}
    number_of: dict[str, int] = {}  # by the word as it is written
    offset, pattern, pause = 0, _WORDS.get(language, _WORD), _PIECE_CHARACTERS
    for text in fold_texts(model_texts) if fold else model_texts:
        if offset >= pause:
            between_pieces()
            pause = offset + _PIECE_CHARACTERS
        before = len(numbers)
        for match in pattern.finditer(text):
            group = match.lastindex or 0
            word = match.group(group)
            number = number_of.get(word)
            if number is None:
                number = number_of[word] = vocabulary.setdefault(
                    word.lower(), len(vocabulary)
                )
            starts.append(match.start(group) + offset)
            ends.append(match.end(group) + offset)
            numbers.append(number)
        words_per_unit.append(len(numbers) - before)
        offset += len(text)
    units = np.repeat(
        np.arange(len(model_texts), dtype=np.int32),
        np.asarray(words_per_unit, np.int64),
    )
    array_of_numbers = np.asarray(numbers, np.int32)
    if language is None:
        language = language_of(vocabulary, array_of_numbers)
        if language == CJK:
            return index_words(model_texts, CJK, between_pieces, fold)
    spans = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    words = list(vocabulary)
    of_stem = Stems(language, words)
    postings = text_postings(array_of_numbers, units, len(model_texts))
    return TextWords(*spans, array_of_numbers, words, of_stem, postings, language)


def words_apart(text: str) -> str:
    """The words of a text in `languages.CJK`, separated by spaces, for code that cuts words at white space."""
    return " ".join(
        match.group(match.lastindex or 0)
        for match in _CJK_WORD.finditer(text)
        if match.lastindex
    )


class Stems(dict[str, list[int]]):
    """The numbers of a vocabulary's lowercase words with each stem of a language."""

    def __init__(self, language: str, words: Sequence[str] = ()) -> None:
        super().__init__()
        self.language, self.n_words = language, 0
        self.learn(words)

    def learn(self, words: Sequence[str]) -> None:
        """Learn the words that come next in the vocabulary."""
        for number, stem in enumerate(
            stems_of(list(words), self.language), self.n_words
        ):
            self.setdefault(stem, []).append(number)
        self.n_words += len(words)


def stems_of(words: list[str], language: str = ENGLISH) -> list[str]:
    """Stems of lowercase words. Words of other languages mostly keep their form."""
    snowball = (
        ENGLISH if language == CJK else language
    )  # English keeps Han and kana, and stems foreign names
    # a new stemmer, since one is not thread-safe; without its cache, which costs more
    # than stemming
    return list(Stemmer.Stemmer(snowball, 0).stemWords(words))


@lru_cache(maxsize=16)  # one question is asked of many texts
def query_words(query: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The distinct lowercase words of a query, in order, without stop words unless it has no other words.

    Stop words are those of the text's ``language``, or of English if the query has more
    of these.
    """
    matches = _WORDS.get(language, _WORD).finditer(folded(query))
    words = tuple(
        dict.fromkeys(match.group(match.lastindex or 0).lower() for match in matches)
    )
    lists = (
        STOP_WORDS_OF.get(language, STOP_WORDS_OF[ENGLISH]),
        STOP_WORDS_OF[ENGLISH],
    )
    stop_words = max(lists, key=lambda listed: sum(word in listed for word in words))
    return tuple(word for word in words if word not in stop_words) or words


@lru_cache(maxsize=16)
def query_stems(query: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The distinct stems of a query's words, in order."""
    return tuple(dict.fromkeys(stems_of(list(query_words(query, language)), language)))


def rows_of(
    vectors: WordVectors, words: Sequence[str], language: str = ENGLISH
) -> NDArray[np.int32]:
    """Rows of lowercase words: (words,).

    Stop words and words of other languages than English are unknown.
    """
    if language != ENGLISH:
        return np.full(len(words), UNKNOWN, np.int32)
    return vectors.rows("" if word in STOP_WORDS else word for word in words)


@dataclass(frozen=True, slots=True)
class QueryOnWords:
    """A query, and the words of a text or of a collection."""

    query: str
    postings: Postings
    of_stem: Mapping[
        str, Sequence[int]
    ]  # numbers of the vocabulary's words with this stem
    vocabulary: Sequence[str]
    rows: NDArray[np.int32] | None = (
        None  # (vocabulary,) in the word vectors, if already known
    )
    language: str = ENGLISH  # in which the query is cut and stemmed

    @classmethod
    def on_text(
        cls,
        query: str,
        words: TextWords,
        vectors: WordVectors | None = None,
        language: str | None = None,
    ) -> Self:
        """A query, and the words of one text, with the stems of a language, by default the text's own."""
        language, of_stem = language or words.language, words.of_stem
        if language != words.language:
            of_stem = Stems(language, words.vocabulary)
        rows = None if vectors is None else rows_of(vectors, words.vocabulary, language)
        return cls(query, words.postings, of_stem, words.vocabulary, rows, language)

    def columns(self) -> NDArray[np.int64]:
        """The index of each word's stem among the query's stems, or -1: (vocabulary,)."""
        columns = np.full(len(self.vocabulary), -1, np.int64)
        for column, stem in enumerate(query_stems(self.query, self.language)):
            columns[np.asarray(self.of_stem.get(stem, ()), np.int64)] = column
        return columns

    def counts(self) -> QueryCounts:
        """Count each stem of the query in each unit."""
        return count_stems(
            self.postings, self.columns(), len(query_stems(self.query, self.language))
        )

    def similarities(
        self, vectors: WordVectors
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield, for some query words at a time, the index of the first and similarities: (vocabulary, some)."""
        rows = (
            rows_of(vectors, self.vocabulary, self.language)
            if self.rows is None
            else self.rows
        )
        words = query_words(self.query, self.language)
        query_rows, stems = (
            rows_of(vectors, words, self.language),
            stems_of(list(words), self.language),
        )
        for first in range(0, len(words), _QUERY_WORDS_AT_ONCE):
            some = slice(first, first + _QUERY_WORDS_AT_ONCE)
            similar = vectors.similarities_of_rows(query_rows[some], rows)
            for column, stem in enumerate(stems[some]):
                similar[np.asarray(self.of_stem.get(stem, ()), np.int64), column] = 1
            yield first, similar
