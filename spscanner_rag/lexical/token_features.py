"""Features of the tokens that words belong to: of a text, by its words' match; of the query, by their rarity."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.soft_match import SimilarWords, best_of_words
from spscanner_rag.lexical.stop_words import ENGLISH
from spscanner_rag.lexical.words import TextWords, indexed_query, query_words

MATCH_FEATURES: Final = 4
"""Numbers that the soft channel gives each token: see `LexicalMatch.token_features`."""

_IDF_SCALE = 5.0

_TOKENS_AT_ONCE = 2**18
"""Bounds memory: a text of emoji has millions of tokens."""

T = TypeVar("T", bound=np.generic)


def word_features(
    similar: SimilarWords, idf: NDArray[np.float64], same_stem: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Features of the tokens of each word of a text: (vocabulary, 4)."""
    weighted, similarity = best_of_words(similar, idf)
    nothing = np.zeros(len(weighted), np.float32)
    return np.stack([similarity, weighted / _IDF_SCALE, same_stem, nothing], axis=1).astype(np.float32)


def query_features(
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    idf: NDArray[np.float64],
    language: str = ENGLISH,
) -> NDArray[np.float32]:
    """Features of the query's own tokens: (query tokens, 4).

    ``token_starts`` and ``token_ends``, (query tokens,), are character positions in ``query.strip()``. ``idf`` is
    that of the query's words in the soft match, (query words,), and ``language`` that of the match.
    """
    words = indexed_query(query, language)
    of_word = dict(zip(query_words(query, language), idf / _IDF_SCALE, strict=True))
    rarity = np.array([of_word.get(word, 0.0) for word in words.vocabulary] + [0.0])
    features = np.zeros((len(token_starts), MATCH_FEATURES), np.float32)
    features[:, -1] = of_tokens(rarity, words, token_starts, token_ends)
    return features


def of_tokens(
    values: NDArray[T], words: TextWords, token_starts: NDArray[np.integer], token_ends: NDArray[np.integer]
) -> NDArray[T]:
    """The value of each token's word: (tokens, ...); ``values`` is (vocabulary + 1, ...), the last for no word."""
    found = np.empty((len(token_starts), *values.shape[1:]), values.dtype)
    for first in range(0, len(token_starts), _TOKENS_AT_ONCE):
        some = slice(first, first + _TOKENS_AT_ONCE)
        found[some] = values[_words_of_tokens(words, token_starts[some], token_ends[some])]
    return found


def _words_of_tokens(
    words: TextWords, token_starts: NDArray[np.integer], token_ends: NDArray[np.integer]
) -> NDArray[np.int64]:
    """The vocabulary number of the word that each token's last character belongs to, else -1: (tokens,)."""
    found = np.full(len(token_starts), -1, np.int64)
    if len(words.starts):
        # the last word that starts before the token's end, if it extends to that end
        word = np.searchsorted(words.starts, token_ends, side="left") - 1  # (tokens,)
        reaches = (word >= 0) & (words.ends[word] >= token_ends) & (token_ends > token_starts)
        found[reaches] = words.numbers[word[reaches]]
    return found
