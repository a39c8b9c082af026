"""The vectors of a corpus: made once, persisted, and part of the first stage."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.encoder.embedders import TextEncoder
from spscanner_rag.encoder.meaning import Meaning, MeaningWeights
from spscanner_rag.encoder.sentences import digest_of
from spscanner_rag.retrieval.corpus import Corpus, vectors_from_arrays, vectors_to_arrays
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.held import ReadBounds, choose_texts
from spscanner_rag.scorers import ScanCancelled
from tests.retrieval.searching import joined

TEXTS = [
    "Cut the leek. Boil the soup for an hour.",
    "The stallion kicked him. He was bitten in the arm.",
    "The council signed the treaty. The man wrote it down.",
    "",
]
WEIGHTS = MeaningWeights(sentence=10.0)
LIKE = (("animal", "stallion", "horse"), ("hurt", "bitten", "kicked"), ("soup", "leek", "meal"))
ONE = ReadBounds(read_documents=1)


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One dimension for each group of words of like meaning."""
    return [[0.01, *(float(any(word in text.lower() for word in group)) for group in LIKE)] for text in texts]


@pytest.fixture
def meaning() -> Meaning:
    """An encoder that knows a few words."""
    return Meaning(TextEncoder(embed), WEIGHTS)


@pytest.fixture
def corpus() -> Corpus:
    """Four texts, one of them empty."""
    return Corpus().with_texts(joined(TEXTS))


def test_a_question_in_other_words_finds_its_document(corpus: Corpus, meaning: Meaning) -> None:
    question = "Which animal hurt somebody?"
    assert [number for number, _ in choose_texts(corpus, question, ONE)] == [0]
    assert [number for number, _ in choose_texts(corpus, question, ONE, meaning=lambda: meaning)] == [1]
    assert [number for number, _ in choose_texts(corpus, "the treaty", ONE, meaning=lambda: meaning)] == [2]


def test_no_encoder_is_asked_for_where_all_is_read(corpus: Corpus) -> None:
    def never() -> Meaning:
        raise AssertionError

    assert len(choose_texts(corpus, "soup", ReadBounds(), meaning=never)) == 3


def test_vectors_are_made_once_and_kept_over_changes(corpus: Corpus, meaning: Meaning) -> None:
    corpus.encoded(meaning, range(4))
    changed = corpus.with_texts(joined([*TEXTS[:2], "A new horse."]))
    assert [changed.knows(number, meaning) for number in range(3)] == [True, True, False]
    assert len(corpus.vectors) == 4


def test_a_folder_gives_the_vectors_back(corpus: Corpus, meaning: Meaning, tmp_path: Path) -> None:
    corpus.encoded(meaning, range(4))
    write_corpus(tmp_path, "ours", [], corpus)
    loaded = read_corpus(tmp_path, "ours")[1].with_texts(joined(TEXTS))
    fresh = Meaning(TextEncoder(embed), WEIGHTS)
    assert all(loaded.knows(number, fresh) for number in range(4))
    assert loaded.meant("the horse", fresh, range(3)) == corpus.meant("the horse", meaning, range(3))
    loaded.encoded(fresh, [1])
    kept = fresh.known(digest_of(["The stallion kicked him. ", "He was bitten in the arm."]))
    assert kept is not None
    assert np.array_equal(kept.rows, corpus.vectors[corpus.keys[1]].rows)


def test_vectors_of_another_encoder_are_made_again(corpus: Corpus, meaning: Meaning) -> None:
    corpus.encoded(meaning, range(4))
    other = Meaning(TextEncoder(lambda texts: [[1.0, 2.0] for _ in texts]), WEIGHTS)
    assert not corpus.knows(0, other)
    corpus.encoded(other, range(4))
    assert all(vectors.rows.shape[1] in (0, 2) for vectors in corpus.vectors.values())


def test_encoding_can_be_cancelled(corpus: Corpus, meaning: Meaning) -> None:
    with pytest.raises(ScanCancelled):
        choose_texts(corpus, "soup", ONE, meaning=lambda: meaning, cancelled=lambda: True)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("vector_rows", np.zeros((3, 4), np.int8)),
        ("vector_rows", np.zeros((6, 4), np.float32)),
        ("vector_rows", np.zeros(6, np.int8)),
        ("vector_scales", np.zeros(3, np.float16)),
        ("vector_counts", np.array([6], np.int64)),
        ("vector_counts", np.array([7, -1, 0, 0], np.int64)),
        ("vector_counts", np.array([2, 2, 1, 0], np.int64)),
    ],
)
def test_misfit_arrays_are_refused(corpus: Corpus, meaning: Meaning, name: str, array: np.ndarray) -> None:
    corpus.encoded(meaning, range(4))
    arrays = vectors_to_arrays(corpus.encoder, corpus.vectors)
    assert vectors_from_arrays(arrays)[1].keys() == corpus.vectors.keys()
    with pytest.raises(ValueError, match="vectors"):
        vectors_from_arrays(arrays | {name: array})
