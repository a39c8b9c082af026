"""The table of word vectors: which words it holds, and what is left of their vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.word_table import frequent_words, make_word_vectors, reduced


def document(text: str, *questions: str) -> Document:
    return Document("d", "s", "", text, tuple(Question(str(n), q, (), ()) for n, q in enumerate(questions)))


def by_length(texts: list[str]) -> NDArray[np.float32]:
    """Vectors in which texts that share letters are near each other, far from the origin."""
    letters = [[text.count(letter) for letter in "abcdefgh"] for text in texts]
    return np.array(letters, np.float32) + 10


def test_frequent_words_are_those_of_documents_and_questions_in_lower_case() -> None:
    documents = [
        document("The ship, the Ship: THE ship's mast.", "Which ship?"),
        document("mast mast über über", "who"),
    ]
    words = ["ship", "mast", "the", "über", "s", "which", "who"]
    assert frequent_words(documents, 99) == words
    assert frequent_words(documents, 3) == words[:3]


def test_reduced_vectors_keep_the_cosines_from_the_mean() -> None:
    random = np.random.default_rng(0)
    axes = np.linalg.qr(random.normal(size=(40, 40)))[0][:5]  # five directions of forty
    vectors = (random.normal(size=(300, 5)) @ axes).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = vectors - vectors.mean(axis=0)
    few = reduced(3 * vectors, 5)
    assert few.shape == (300, 5)
    np.testing.assert_allclose(few @ few.T, centred @ centred.T, atol=1e-4)
    variance = few.var(axis=0)
    assert (np.diff(variance) <= 1e-6).all(), "the most important axis is the first"


def test_a_table_of_files(tmp_path: Path) -> None:
    plain, questions = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_text("bad cab bad face\n\x1e\nbad head", encoding="utf-8")
    record = {"doc_id": "1", "source": "s", "text": "dead head", "questions": []}
    questions.write_text(json.dumps(record) + "\n", encoding="utf-8")
    said: list[str] = []
    table = make_word_vectors([plain, questions], by_length, 4, 3, "letters", said.append)
    assert table.words == ("bad", "head", "cab", "dead")
    assert (table.dimensions, table.source) == (3, "letters")
    assert said == ["counting the words of 2 files", "embedding 4 words"]


@pytest.mark.parametrize(
    ("words", "dimensions", "message"),
    [
        (0, 3, "words is 0; expected at least 1"),
        (9, 0, "dimensions is 0; expected 1 to 128"),
        (9, 129, "dimensions is 129; expected 1 to 128"),
        (9, 5, "4 different words; expected at least as many as dimensions, 5: add texts, or lower it"),
    ],
)
def test_numbers_that_cannot_be(tmp_path: Path, words: int, dimensions: int, message: str) -> None:
    (tmp_path / "a.txt").write_text("bad cab face head", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        make_word_vectors([tmp_path / "a.txt"], by_length, words, dimensions)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    for paths, message in (
        ([], "no files to count words in"),
        ([tmp_path / "a.txt"], "no such file"),
        ([tmp_path / "a.pdf"], r"expected a file that ends in \.txt"),
    ):
        with pytest.raises(ValueError, match=message):
            make_word_vectors(paths, by_length)
    (tmp_path / "a.txt").write_text("a b c d e f g h i j k", encoding="utf-8")
    with pytest.raises(ValueError, match="dimensions is 9, the embedding has 8"):
        make_word_vectors([tmp_path / "a.txt"], by_length, 20, 9)
