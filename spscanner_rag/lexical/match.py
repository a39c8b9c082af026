"""The lexical channel: which words of a text also occur in the query, and BM25 scores per unit.

A small model cannot learn from a few thousand questions that "Ahab" in the query and
"Ahab" in the document are the same; this channel tells it, and with word vectors also
which words mean about the same. Everything is relative to the collection, that is, the
texts that are searched: its units are BM25's documents.

In the soft match, s(q, v) is the similarity of a query word q and a text's word v (1
for words of the same stem; stop words match no others), df(v) the number of units that
contain v, and n the number of units. A query word has

    df(q) = min(n, sum over v of s(q, v) df(v)),    idf(q) = ln(1 + (n - df(q) + 0.5) / (df(q) + 0.5))

and a unit, or its surroundings, has the score sum over q of idf(q) times the largest
s(q, v) of its words.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import (
    BM25_K1,
    REACH,
    Moments,
    Postings,
    QueryCounts,
    TextStatistics,
    bm25_scores,
    moments_of,
    rarity,
    standardized_by,
    tempered,
    text_scores,
    text_statistics,
)
from spscanner_rag.lexical.words import (
    QueryOnWords,
    TextWords,
    WordVectors,
    index_words,
    query_words,
)
from spscanner_rag.text.languages import ENGLISH

# numbers that the soft channel gives each token: see `LexicalMatch.token_features`
MATCH_FEATURES: Final = 4
_IDF_SCALE = 5.0

_TOKENS_AT_ONCE = 2**18  # bounds memory: a text of emoji has millions of tokens
T = TypeVar("T", bound=np.generic)

IDF_EDGES = (1.5, 2.5, 3.5, 5.0)
"""Boundaries, as idf with natural logarithm, between match classes 1 to 5; class 5
has the rarest words."""


_STEPS = (1, 2, 5)
"""Windows of 3, 7 and 17 units (`REACH`) each consist of three windows of the width
before, this far apart."""


class SoftStatistics(NamedTuple):
    """Statistics of a query over all units of a text or a collection, to which its soft matches are relative."""

    idf: NDArray[np.float64]  # (query words,)
    moments: tuple[
        Moments, ...
    ]  # of the soft scores of the units and, by `REACH`, of their surroundings


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """Statistics of a query over all units of a text or a collection, to which its matches are relative."""

    idf: NDArray[np.float64]  # (stems,) of the query
    mean_words: tuple[float, ...]  # of a unit and, by `REACH`, of its surroundings
    moments: tuple[Moments, ...]  # of their BM25 scores
    soft: SoftStatistics | None = None
    language: str = ENGLISH  # in which the query was cut and stemmed
    texts: TextStatistics | None = (
        None  # for a collection whose texts are compared as wholes
    )


@dataclass(frozen=True, slots=True)
class LexicalMatch:
    """The lexical match of a query with a text.

    ``scores`` begin with the z-score of the unit's BM25 over the collection's units
    and, with ``surroundings``, those of the text around it by `REACH`. With word
    vectors, the same four of the soft match follow, and then, for both, the four scores
    as shares of the largest possible one. ``token_features`` are the similarity s of
    the token's word to the query word with the largest s * idf, that product over 5,
    whether the stem is the same, and 0 (for tokens of the query itself, the idf of
    their word over 5).
    """

    token_classes: NDArray[np.uint8]  # (text tokens,): 0 none, 1 to 5 by idf
    scores: NDArray[np.float32]  # (units, 1, 4 or 16)
    token_features: NDArray[np.float32] | None = (
        None  # (text tokens, 4), with word vectors
    )
    query_idf: NDArray[np.float64] | None = (
        None  # (query words,) in the soft match, with word vectors
    )
    language: str = ENGLISH  # in which the query was cut and stemmed
    # of the whole text, minus the collection's best; 0 if texts are not compared
    text_score: float = 0.0


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """Options of the match, which depend on the checkpoint."""

    surroundings: bool = False  # whether the text around each unit is scored as well
    least_units: int = 0
    vectors: WordVectors | None = (
        None  # for the soft match, which needs the surroundings
    )
    texts: bool = (
        False  # whether texts are also compared as wholes, which needs the surroundings
    )


PLAIN_MATCH = MatchOptions()


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """The scores of a query's words in every unit of a text or a collection."""

    counts: QueryCounts
    statistics: LexicalStatistics  # the scores are relative to these
    bm25: tuple[
        NDArray[np.float64], ...
    ]  # (units,) each: of the unit and, by `REACH`, of its surroundings
    soft: NDArray[np.float64] | None = None  # (4, units) of the soft match

    def standardized(self) -> list[NDArray[np.float64]]:
        """Z-scores of each of ``bm25``: (units,)."""
        return standardized_by(self.statistics.moments, self.bm25)


def lexical_scores(
    asked: QueryOnWords,
    options: MatchOptions,
    statistics: LexicalStatistics | None = None,
) -> LexicalScores:
    """Score a query in every unit of a text or a collection, relative to ``statistics``, by default its own."""
    counts, least = asked.counts(), options.least_units
    idf = rarity(counts, least) if statistics is None else statistics.idf
    reaches = (0, *REACH) if options.surroundings else (0,)
    given = (None,) * len(reaches) if statistics is None else statistics.mean_words
    found = [
        bm25_scores(counts, idf, *each) for each in zip(reaches, given, strict=True)
    ]
    means, scores = zip(*found, strict=True)
    soft, soft_statistics = None, None if statistics is None else statistics.soft
    if options.surroundings and options.vectors is not None:
        soft_idf = None if soft_statistics is None else soft_statistics.idf
        soft_idf, soft = soft_scores(asked, options.vectors, least, soft_idf)
        soft_statistics = soft_statistics or SoftStatistics(
            soft_idf, moments_of([*soft], least)
        )
    if statistics is None:
        moments = moments_of(scores, least)
        statistics = LexicalStatistics(
            idf, means, moments, soft_statistics, asked.language
        )
        if options.texts and len(counts.text_starts) > 1:
            texts = text_statistics(counts, standardized_by(statistics.moments, scores))
            statistics = replace(statistics, texts=texts)
    return LexicalScores(counts, statistics, scores, soft)


def match_query(
    words: TextWords,
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    options: MatchOptions = PLAIN_MATCH,
    statistics: LexicalStatistics | None = None,
) -> LexicalMatch:
    """Match a query with a text; by default the text is its own collection.

    ``token_starts`` and ``token_ends``, (text tokens,), are positions in the joined
    model text; a token's class is that of the word with its last character.
    ``statistics`` are the query's in the collection, by these options.
    """
    language = words.language if statistics is None else statistics.language
    asked = QueryOnWords.on_text(query, words, options.vectors, language)
    scores = lexical_scores(asked, options, statistics)
    statistics, soft, columns = scores.statistics, scores.soft, asked.columns()
    classes = 1 + np.searchsorted(IDF_EDGES, statistics.idf, side="right")  # (stems,)
    class_of = np.append(classes, 0).astype(np.uint8)[
        columns
    ]  # (vocabulary,); column -1 is class 0
    token_classes = of_tokens(
        np.append(class_of, np.uint8(0)), words, token_starts, token_ends
    )
    unit_z, text_score = scores.standardized(), 0.0
    if statistics.texts is not None:
        text_score = (
            float(text_scores(scores.counts, unit_z, statistics.texts)[0])
            - statistics.texts.best
        )
    standard = np.stack(unit_z, axis=1)
    match = LexicalMatch(
        token_classes,
        standard.astype(np.float32),
        language=language,
        text_score=text_score,
    )
    if options.vectors is None or soft is None or statistics.soft is None:
        return match
    standard_soft = np.stack(standardized_by(statistics.soft.moments, [*soft]), axis=1)
    most = (BM25_K1 + 1) * statistics.idf.sum()
    columns_of_scores = [
        tempered(standard),
        tempered(standard_soft),
        np.stack(scores.bm25, axis=1) / max(most, 1e-9),
        soft.T / max(statistics.soft.idf.sum(), 1e-9),
    ]
    weighted, similarity = best_of_words(
        asked, options.vectors, statistics.soft.idf
    )  # each (vocabulary,)
    features = np.zeros(
        (len(weighted) + 1, MATCH_FEATURES), np.float32
    )  # the last row is for no word
    features[:-1, :3] = np.stack(
        [similarity, weighted / _IDF_SCALE, columns >= 0], axis=1
    )
    return replace(
        match,
        scores=np.concatenate(columns_of_scores, axis=1).astype(np.float32),
        token_features=of_tokens(features, words, token_starts, token_ends),
        query_idf=statistics.soft.idf,
    )


def query_features(
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    idf: NDArray[np.float64],
    language: str = ENGLISH,
) -> NDArray[np.float32]:
    """Features of the query's own tokens, in ``query.strip()``: (query tokens, 4).

    ``idf``: (query words,).
    """
    words = index_words([query.strip()], language)
    of_word = dict(zip(query_words(query, language), idf / _IDF_SCALE, strict=True))
    rarity = np.array([of_word.get(word, 0.0) for word in words.vocabulary] + [0.0])
    features = np.zeros((len(token_starts), MATCH_FEATURES), np.float32)
    features[:, -1] = of_tokens(rarity, words, token_starts, token_ends)
    return features


def of_tokens(
    values: NDArray[T],
    words: TextWords,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
) -> NDArray[T]:
    """The value of the word that contains each token's last character: (tokens, ...).

    ``values`` is (vocabulary + 1, ...); the last is for tokens without a word.
    """
    found = np.empty((len(token_starts), *values.shape[1:]), values.dtype)
    found[:] = values[-1]
    for first in range(
        0, len(token_starts) if len(words.starts) else 0, _TOKENS_AT_ONCE
    ):
        starts, ends = (
            own[first : first + _TOKENS_AT_ONCE] for own in (token_starts, token_ends)
        )
        # the last word that starts before the token's end, if it extends to that end
        word = np.searchsorted(words.starts, ends, side="left") - 1  # (tokens,)
        reaches = np.flatnonzero(
            (word >= 0) & (words.ends[word] >= ends) & (ends > starts)
        )
        found[first + reaches] = values[words.numbers[word[reaches]]]
    return found


def soft_scores(
    asked: QueryOnWords,
    vectors: WordVectors,
    least_units: int = 0,
    idf: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Soft scores of every unit of some texts, with the given idf or else that of these texts.

    Returns the idf, (query words,), and the scores of each unit and of the text around
    it by `REACH`: (4, units).
    """
    n_units, starts = asked.postings.n_units, asked.postings.text_stops[:-1]
    n, units = max(n_units, least_units), np.arange(n_units)
    # with room for the largest window before and after each text
    places = units + np.searchsorted(starts, units, side="right") * REACH[-1]
    length = n_units + (len(starts) + 1) * REACH[-1]
    found = (
        np.zeros(len(query_words(asked.query, asked.language))) if idf is None else idf
    )
    scores = np.zeros((1 + len(REACH), n_units))
    for first, similar in asked.similarities(vectors):
        for column in range(similar.shape[1]):
            frequency, best = _best_of_units(similar[:, column], asked.postings)
            if idf is None:
                df = min(n, frequency)
                found[first + column] = np.log1p((n - df + 0.5) / (df + 0.5))
            if frequency:
                for sums, largest in zip(
                    scores, (best, *_largest_around(best, places, length)), strict=True
                ):
                    sums += found[first + column] * largest
    return found, scores


def best_of_words(
    asked: QueryOnWords, vectors: WordVectors, idf: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The largest s(q, v) idf(q) over the query's words for each word of the text, and that s: (vocabulary,)."""
    weighted = np.zeros(len(asked.vocabulary), np.float32)
    similarity = np.zeros(len(asked.vocabulary), np.float32)
    everyone = np.arange(len(asked.vocabulary))
    for first, similar in asked.similarities(vectors):
        values = similar * idf[first : first + similar.shape[1]].astype(np.float32)
        best = values.argmax(axis=1)
        better = values[everyone, best] > weighted
        weighted[better] = values[everyone, best][better]
        similarity[better] = similar[everyone, best][better]
    return weighted, similarity


def _best_of_units(
    similar: NDArray[np.float32], postings: Postings
) -> tuple[float, NDArray[np.float32]]:
    """A query word's df, and its largest similarity to a word of each unit: (units,)."""
    best = np.zeros(postings.n_units, np.float32)
    values = similar[postings.words]
    places = np.flatnonzero(values)
    sizes = postings.stops[places + 1] - postings.stops[places]
    # all postings of these words: for each word the range from its first to its last
    ends = np.cumsum(sizes)
    shift = np.repeat(postings.stops[places] - (ends - sizes), sizes)
    units = postings.units[np.arange(len(shift)) + shift]
    np.maximum.at(best, units, np.repeat(values[places], sizes))
    return float(values[places] @ sizes), best


def _largest_around(
    values: NDArray[np.float32], places: NDArray[np.int64], length: int
) -> Iterator[NDArray[np.float32]]:
    """The largest value among each unit and those around it in the same text, by `REACH`: (units,)."""
    spaced = np.zeros(length, np.float32)
    spaced[places] = values
    for step in _STEPS:
        wider = spaced.copy()
        np.maximum(wider[step:], spaced[:-step], out=wider[step:])
        np.maximum(wider[:-step], spaced[step:], out=wider[:-step])
        spaced = wider
        yield spaced[places]
