import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource, OtherWords
from spscanner_rag.lab.training.data.questions import Drawn
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import MatchOptions
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.scan.prepare import Reading

WORDS = ["built", "constructed", "erected", "building", "builder", "badger", "animal", "river", "the", "1908"]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Words that mean about the same have nearly the same direction: built to builder, badger and animal."""
    directions = np.eye(4)[[0, 0, 0, 0, 0, 1, 1, 2, 0, 0]]
    return WordVectors.of_vectors(WORDS, directions + 0.01 * np.arange(10)[:, None])


def test_words_are_exchanged_for_near_ones(vectors: WordVectors) -> None:
    other, draw = OtherWords(vectors, 1), random.Random(0)
    seen = Counter(other.text("Who built the river wall in 1908, Anne?", draw) for _ in range(400))
    # "building" has the same beginning, "river" has no near word, "wall" is unknown
    assert set(seen) == {
        f"Who {word} the river wall in 1908, Anne?" for word in ("built", "constructed", "erected")
    }
    assert 200 < seen["Who built the river wall in 1908, Anne?"] < 280  # six in ten words stay


@pytest.mark.parametrize("word", ["Built", "BUILT", "the", "1908", "river", "unheard", ""])
def test_what_stays(vectors: WordVectors, word: str) -> None:
    other, draw = OtherWords(vectors, 1), random.Random(0)
    assert {other.text(f"{word} x?", draw) for _ in range(50)} == {f"{word} x?"}


def test_a_share_of_the_questions(vectors: WordVectors) -> None:
    other, draw = OtherWords(vectors, 0.25), random.Random(0)
    drawn = Drawn(3, Question("q", "Was it built, built and built?", evidence=((0, 4),)), 2, True)
    changed = [other.drawn(drawn, draw) for _ in range(400)]
    assert 50 < sum(each.question.text != drawn.question.text for each in changed) < 130
    assert {(each.document, each.place, each.question.qid, each.question.evidence) for each in changed} == {
        (3, 2, "q", ((0, 4),))
    }
    assert drawn.question.text == "Was it built, built and built?"


@pytest.mark.parametrize("group_share", [0.0, 0.9])
def test_examples_ask_in_other_words(
    documents: list[Document], reading: Reading, vectors: WordVectors, group_share: float
) -> None:
    documents = [  # whose questions are no other document's
        replace(
            document, questions=[replace(q, text=f"{q.text} {document.doc_id}") for q in document.questions]
        )
        for document in documents
    ]

    def questions(share: float) -> list[bool]:
        options = MatchOptions(surroundings=True, vectors=vectors)
        lexical = Reading(reading.tokenizer, reading.segmenter, "last_character", 64, True, True, options)
        recipe = Recipe(
            sequence_tokens=(256,), other_words_share=share, group_share=group_share, group_tokens=150,
            lexical_match=True, lexical_prior=True, lexical_surroundings=True, lexical_soft=True,
        )  # fmt: skip
        source = ExampleSource(DocumentStore(documents), lexical, recipe)
        ids = (source.example(number, 256).sequence.input_ids.tolist() for number in range(60))
        return ["Where was the animal" in reading.tokenizer.decode(each) for each in ids]

    assert not any(questions(0.0))
    assert any(questions(0.99))
    assert questions(0.99) == questions(0.99)


def test_needs_word_vectors() -> None:
    with pytest.raises(ValueError, match=r"other_words_share is 0\.5 without lexical_soft"):
        Recipe(other_words_share=0.5)
