"""What the vectors of a language have in common does not count across languages."""

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.encoder.across_languages import (
    FEWEST_SENTENCES,
    QuestionMeans,
    cosines_across,
    questions,
    reads_across,
)
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.text.language_parts import question_language

N_SENTENCES = 12
RIGHT = 5
OF_ENGLISH = np.array([0, 0, 3, 0], np.float32)
OF_CHINESE = np.array([0, 0, 0, 3], np.float32)
QUESTION = np.array([1, 0, 3, 0], np.float32) / np.float32(np.sqrt(10))


def vectors_of_chinese() -> NDArray[np.float32]:
    """Sentences of which one means what is asked, and another looks English."""
    vectors = np.zeros((N_SENTENCES, 4), np.float32)
    vectors[:, 1] = np.linspace(-1, 1, N_SENTENCES)
    vectors[RIGHT, :2] = [1, 0]
    vectors += OF_CHINESE
    vectors[2] = [-1, 0, 1.5, 3]
    return vectors


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.isascii()), 1.0] for text in texts]


@pytest.fixture
def means() -> QuestionMeans:
    encoder: SentenceEncoder = TextEncoder(embed)
    return QuestionMeans(encoder)


def test_a_sentence_is_not_near_for_its_language() -> None:
    vectors = SentenceVectors.of(vectors_of_chinese())
    languages = ["han"] * N_SENTENCES
    plain = vectors.cosines(QUESTION)
    assert plain.argmax() == 2
    question_mean = OF_ENGLISH / np.float32(np.sqrt(10))
    cosines = cosines_across(QUESTION, question_mean, vectors, languages)
    assert cosines.argmax() == RIGHT
    assert cosines.mean() == pytest.approx(plain.mean(), abs=1e-5)
    assert cosines.std() == pytest.approx(plain.std(), abs=1e-5)


def test_each_language_of_a_text_has_its_mean() -> None:
    english = vectors_of_chinese() - OF_CHINESE + OF_ENGLISH
    english[RIGHT, 0] = 0  # the answer is in the other half
    english[2] = OF_ENGLISH
    chinese = vectors_of_chinese()
    chinese[2] = OF_CHINESE
    vectors = SentenceVectors.of(np.concatenate([english, chinese]))
    languages = ["english"] * N_SENTENCES + ["han"] * N_SENTENCES
    question_mean = OF_ENGLISH / np.float32(np.sqrt(10))
    assert vectors.cosines(QUESTION).argmax() < N_SENTENCES
    cosines = cosines_across(QUESTION, question_mean, vectors, languages)
    assert cosines.argmax() == N_SENTENCES + RIGHT


def test_sentences_that_are_all_alike_have_plain_cosines() -> None:
    vectors = SentenceVectors.of(np.ones((N_SENTENCES, 4), np.float32))
    cosines = cosines_across(QUESTION, QUESTION, vectors, ["han"] * N_SENTENCES)
    np.testing.assert_allclose(cosines, vectors.cosines(QUESTION), atol=1e-3)


@pytest.mark.parametrize(
    ("question", "languages", "expected"),
    [
        ("Who signed the treaty?", ["han"] * N_SENTENCES, True),
        ("谁签署了条约", ["han"] * N_SENTENCES, False),
        ("谁签署了条约", ["han"] * N_SENTENCES + ["english"], False),
        ("谁签署了条约", ["han", "english"] * N_SENTENCES, True),
        ("谁签署了条约", ["english"] * (FEWEST_SENTENCES - 1), False),
        ("NATO 1949", ["han"] * N_SENTENCES, False),
        ("Who signed the treaty?", [""] * N_SENTENCES, False),
        ("Who signed the treaty?", [], False),
    ],
)
def test_only_other_languages_are_read_across(
    question: str, languages: list[str], expected: bool
) -> None:
    assert reads_across(question, languages) == expected


def test_questions_are_in_their_languages() -> None:
    for language, texts in questions().items():
        expected = "han" if language == "kana" else language
        assert {question_language(question) for question in texts} == {expected}
        assert len(set(texts)) == 12


def test_a_mean_is_that_of_questions_in_the_language(means: QuestionMeans) -> None:
    encoder = TextEncoder(embed)
    for question, language in (
        ("Who signed it?", "english"),
        ("谁签署了条约", "han"),
        ("だれが署名しましたか", "kana"),
    ):
        vectors = [encoder.question(text) for text in questions()[language]]
        np.testing.assert_allclose(means.of(question), np.mean(vectors, 0), atol=1e-6)
    others = np.mean([means.of(texts[0]) for texts in questions().values()], 0)
    korean = means.of("누가 조약에 서명했습니까")
    np.testing.assert_allclose(korean, others, atol=1e-6)
