"""The lexical channel: which words of a text also occur in the query.

A small model cannot learn from a few thousand questions that "Ahab" in the query and
"Ahab" in the document are the same; this channel tells it, and with word vectors also
which words mean about the same (`lexical.soft_match`). What the model gets, for each
token and for each unit, is relative to the collection (`lexical.lexical_scores`).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import BM25_K1
from spscanner_rag.lexical.lexical_scores import (
    PLAIN_MATCH,
    LexicalScores,
    LexicalStatistics,
    MatchOptions,
    lexical_scores,
)
from spscanner_rag.lexical.moments import standardized_by, tempered
from spscanner_rag.lexical.query_on_words import QueryOnWords
from spscanner_rag.lexical.soft_match import best_of_words
from spscanner_rag.lexical.text_scores import text_scores
from spscanner_rag.lexical.token_values import TokenValues, of_tokens
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import TextWords, index_words, query_words
from spscanner_rag.text.languages import ENGLISH

MATCH_FEATURES: Final = 4
"""Numbers that the soft match gives each token: `LexicalMatch.token_features`."""

_IDF_SCALE = 5.0

IDF_EDGES = (1.5, 2.5, 3.5, 5.0)
"""Boundaries, as idf with natural logarithm, between match classes 1 to 5; class 5
has the rarest words."""


@dataclass(frozen=True, slots=True)
class LexicalMatch:
    """The lexical match of a query with a text.

    Parameters
    ----------
    token_classes : TokenValues of uint8, (text tokens,)
        0 for a token of no word of the query, else 1 to 5 by its idf.
    scores : array of float32, shape (units, 1, 4 or 16)
        First the z-score of the unit's BM25 over the collection's units and, with
        ``surroundings``, those of the text around it by `REACH`. With word vectors, the
        same four of the soft match follow, and then, for both, the four scores as
        shares of the largest possible one.
    token_features : TokenValues of float32, (text tokens, 4), optional
        With word vectors: the similarity s of the token's word to the query word with
        the largest s * idf, that product over 5, whether the stem is the same, and 0
        (for tokens of the query itself, the idf of their word over 5).
    query_idf : array of float64, shape (query words,), optional
        The idf in the soft match, with word vectors.
    language : str
        The language in which the query was cut and stemmed.
    text_score : float
        The score of the whole text, minus the collection's best; 0 if texts are not
        compared.
    """

    token_classes: TokenValues[np.uint8]
    scores: NDArray[np.float32]
    token_features: TokenValues[np.float32] | None = None
    query_idf: NDArray[np.float64] | None = None
    language: str = ENGLISH
    text_score: float = 0.0


def match_query(
    words: TextWords,
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    options: MatchOptions = PLAIN_MATCH,
    statistics: LexicalStatistics | None = None,
) -> LexicalMatch:
    """Match a query with a text.

    By default the text is its own collection. ``token_starts`` and ``token_ends``,
    (text tokens,), are positions in the joined model text; a token's class is that of
    the word with its last character. ``statistics`` are the query's in the collection,
    by these options.

    Examples
    --------
    >>> words = index_words(["The keeper signed it. ", "The ship left."])
    >>> token_starts = np.array([0, 4, 11, 18, 22, 26, 31])
    >>> token_ends = np.array([3, 10, 17, 20, 25, 30, 35])
    >>> match = match_query(words, "Who is the keeper?", token_starts, token_ends)
    >>> match.token_classes[:].tolist()
    [0, 1, 0, 0, 0, 0, 0]
    >>> match.scores.tolist()
    [[1.0], [-1.0]]
    """
    language = words.language if statistics is None else statistics.language
    query_on_words = QueryOnWords.on_text(query, words, options.vectors, language)
    scores = lexical_scores(query_on_words, options, statistics)
    columns = query_on_words.columns()
    unit_z = scores.standardized()
    make_classes = partial(_classes_of_words, scores.statistics.idf, columns)
    match = LexicalMatch(
        TokenValues(make_classes, words, token_starts, token_ends),
        np.stack(unit_z, axis=1).astype(np.float32),
        language=language,
        text_score=_text_score(scores, unit_z),
    )
    soft = scores.statistics.soft
    if options.vectors is None or scores.soft is None or soft is None:
        return match
    make_features = partial(
        _features_of_words, query_on_words, options.vectors, soft.idf, columns
    )
    return replace(
        match,
        scores=_all_scores(scores, unit_z),
        token_features=TokenValues(make_features, words, token_starts, token_ends),
        query_idf=soft.idf,
    )


def _classes_of_words(
    idf: NDArray[np.float64], columns: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The class of each word of the vocabulary, and 0 for no word at the end.

    ``idf``, (stems,), is that of the query's stems, and ``columns``, (vocabulary,), has
    the stem of each word.
    """
    classes = 1 + np.searchsorted(IDF_EDGES, idf, side="right")  # (stems,)
    with_none = np.append(classes, 0).astype(np.uint8)  # column -1 is class 0
    return np.append(with_none[columns], np.uint8(0))


def _features_of_words(
    query_on_words: QueryOnWords,
    vectors: WordVectors,
    idf: NDArray[np.float64],
    columns: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The features of each word's tokens, (vocabulary + 1, `MATCH_FEATURES`).

    The last row is for tokens of no word.
    """
    weighted, similarity = best_of_words(query_on_words, vectors, idf)
    features = np.zeros((len(weighted) + 1, MATCH_FEATURES), np.float32)
    features[:-1, 0] = similarity
    features[:-1, 1] = weighted / _IDF_SCALE
    features[:-1, 2] = columns >= 0
    return features


def _text_score(scores: LexicalScores, unit_z: list[NDArray[np.float64]]) -> float:
    """The score of the only text as a whole, minus the collection's best."""
    statistics = scores.statistics.texts
    if statistics is None:
        return 0.0
    return float(text_scores(scores.counts, unit_z, statistics)[0]) - statistics.best


def _all_scores(
    scores: LexicalScores, unit_z: list[NDArray[np.float64]]
) -> NDArray[np.float32]:
    """The scores that a match has with word vectors: (units, 16)."""
    soft = scores.statistics.soft
    assert soft is not None
    assert scores.soft is not None
    soft_z = standardized_by(soft.moments, [*scores.soft])
    largest_bm25 = (BM25_K1 + 1) * scores.statistics.idf.sum()
    columns = [
        tempered(np.stack(unit_z, axis=1)),
        tempered(np.stack(soft_z, axis=1)),
        np.stack(scores.bm25, axis=1) / max(largest_bm25, 1e-9),
        scores.soft.T / max(soft.idf.sum(), 1e-9),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def query_features(
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    idf: NDArray[np.float64],
    language: str = ENGLISH,
) -> NDArray[np.float32]:
    """Features of the query's own tokens, in ``query.strip()``: (query tokens, 4).

    ``idf`` is (query words,).
    """
    words = index_words([query.strip()], language)
    scaled_idf = dict(zip(query_words(query, language), idf / _IDF_SCALE, strict=True))
    of_words = [scaled_idf.get(word, 0.0) for word in words.vocabulary]
    values = np.array([*of_words, 0.0])
    features = np.zeros((len(token_starts), MATCH_FEATURES), np.float32)
    features[:, -1] = of_tokens(values, words, token_starts, token_ends)
    return features
