"""What a scan over sentences reads of a question and a text: one row a sentence."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.meaning_weights import NEAR, WIDE, mean_of_neighbours
from spscanner_rag.lexical.moments import tempered
from spscanner_rag.text.sentence_marks import MARKS, QUESTION_MARKS

LEXICAL_SCORES: Final = 16
"""Scores of a unit's words and their surroundings; `lexical.match.LexicalMatch`."""

N_FEATURES: Final = 3 + LEXICAL_SCORES + 9 + 2 + 3 + len(MARKS) + len(QUESTION_MARKS)
"""Numbers of a row."""

_COSINE_SCALE = 4.0
_LARGEST = 6.0
_LARGEST_LOGARITHM = 10.0
_SMOOTH = 2  # neighbours on each side whose mean cosine is ranked


def sentence_features(
    cosines: NDArray[np.float32],
    lexical_scores: NDArray[np.float32],
    marks: NDArray[np.float32],
    question: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the features of a text's sentences, (sentences, `N_FEATURES`).

    They are the cosine, its means over neighbours, lexical scores, how the cosine, its
    smoothed value and the lexical score compare with the text's others, the place in
    the text, and the marks of sentence and question.

    Parameters
    ----------
    cosines : array (sentences,)
        Of the question with the sentences, on the scale of the bundled encoder.
    lexical_scores : array (sentences, 16)
        The scores of a match with word vectors.
    marks : array (sentences, marks)
        From `text.sentence_marks.sentence_marks`.
    question : array (question marks,)
        From `text.sentence_marks.question_marks`.
    """
    n_sentences = len(cosines)
    if not n_sentences:
        return np.zeros((0, N_FEATURES), np.float32)
    near = mean_of_neighbours(cosines, NEAR) - cosines
    wide = mean_of_neighbours(cosines, WIDE) - cosines
    word_scores = lexical_scores[:, 0]
    numbers = np.arange(n_sentences)
    best = np.array([cosines.max(), word_scores.max() / _LARGEST], np.float32)
    length = np.log1p(n_sentences) / _LARGEST_LOGARITHM
    columns: list[NDArray[np.floating]] = [
        _COSINE_SCALE * np.stack([cosines, near, wide], axis=1),
        lexical_scores,
        _standing(cosines),
        _standing(mean_of_neighbours(cosines, _SMOOTH)),
        _standing(word_scores),
        np.broadcast_to(best, (n_sentences, 2)),
        (numbers / n_sentences)[:, None],
        (np.log1p(numbers) / _LARGEST_LOGARITHM)[:, None],
        np.full((n_sentences, 1), length),
        marks,
        np.broadcast_to(question, (n_sentences, len(question))),
    ]
    features = np.concatenate(columns, axis=1).astype(np.float32)
    return np.asarray(np.clip(features, -_LARGEST, _LARGEST), np.float32)


def _standing(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """How scores compare with each other: (sentences, 3).

    Their tempered z-score, the logarithm of their rank, and how far they are behind the
    best.
    """
    values = scores.astype(np.float64)
    spread = max(float(values.std()), 1e-4)
    z = tempered((values - values.mean()) / spread)
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    behind = values - values.max()
    return np.stack([z / 3, np.log1p(ranks) / 5, behind], axis=1)
