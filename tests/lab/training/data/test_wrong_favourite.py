import random

import numpy as np

from spscanner_rag.lab.training.data.questions import bm25_scores, wrong_favourite
from spscanner_rag.lexical.words import index_words

SENTENCES = ["The red fox slept. ", "A fox ran. ", "The dog ran. ", "It was red. ", "Nothing else. "]


def test_one_of_the_best_allowed_sentences_is_drawn() -> None:
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    allowed = np.array([False, True, True, True, True])
    drawn = {wrong_favourite(scores, allowed, random.Random(seed)) for seed in range(50)}
    assert drawn == {1, 2, 3}
    assert wrong_favourite(scores, np.zeros(5, bool), random.Random(0)) is None
    few = {wrong_favourite(scores, scores == 4.0, random.Random(seed)) for seed in range(9)}
    assert few == {1}


def test_bm25_scores_are_positive_where_a_word_is_shared() -> None:
    scores = bm25_scores(index_words(SENTENCES), "Where did the red foxes sleep?")
    assert scores.argmax() == 0
    assert (scores > 0).tolist() == [True, True, False, True, False]
