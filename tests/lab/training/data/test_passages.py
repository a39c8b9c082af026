from spscanner_lab.training.data.passages import bm25_scores
from spscanner_rag.lexical.words import index_words


def test_bm25_scores_are_positive_where_a_word_is_shared() -> None:
    sentences = [
        "The red fox slept. ",
        "A fox ran. ",
        "The dog ran. ",
        "It was red. ",
        "Nothing else. ",
    ]
    scores = bm25_scores(index_words(sentences), "Where did the red foxes sleep?")
    assert scores.argmax() == 0
    assert (scores > 0).tolist() == [True, True, False, True, False]
