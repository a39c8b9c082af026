"""A text is read by the encoders that its questions need, and by no other."""

from types import SimpleNamespace
from typing import cast

import pytest

from spscanner_rag.encoder.meaning_by_language import MeaningByLanguage
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.reading import Reading
from spscanner_rag.scan.text_vectors import TextVectors

ENGLISH = ["The keeper signed the treaty. ", "The bell rang at noon."]
GERMAN = ["Der Wärter hat den Vertrag unterzeichnet. ", "Die Glocke läutete."]
QUESTION = "Who signed the treaty?"
FRAGE = "Wer hat den Vertrag unterzeichnet?"


@pytest.mark.parametrize(
    ("sentences", "questions", "expected"),
    [
        (ENGLISH, [QUESTION, QUESTION], ["english"]),
        (ENGLISH, [FRAGE, FRAGE], ["other"]),
        (ENGLISH, [FRAGE, QUESTION, FRAGE], ["other", "english"]),
        (ENGLISH, [QUESTION, FRAGE, QUESTION], ["english", "other"]),
        (GERMAN, [FRAGE, QUESTION], ["other"]),
    ],
)
def test_only_needed_encoders_read(
    sentences: list[str], questions: list[str], expected: list[str]
) -> None:
    reads = []

    def embed_english(texts: list[str]) -> list[list[float]]:
        if len(texts) == len(sentences):  # else they are those of a digest
            reads.append("english")
        return [[1.0, float(len(text))] for text in texts]

    def embed_all(texts: list[str]) -> list[list[float]]:
        if len(texts) == len(sentences):
            reads.append("other")
        return [[1.0, float(len(text)), 0.0] for text in texts]

    meaning = MeaningByLanguage(
        TextEncoder(embed_english),
        MeaningWeights(),
        load_multilingual=lambda: TextEncoder(embed_all),
    )
    reading = SimpleNamespace(
        reader_for=meaning.reader_for,
        vectors=lambda indexed, meter: meaning.vectors(indexed.sentences),
    )
    indexed = SimpleNamespace(sentences=sentences)
    vectors = TextVectors(cast(Reading, reading), cast(IndexedText, indexed), None)
    for question in questions:
        made = vectors.for_question(question, Meter())
        assert made is not None
        assert made.rows.shape[1] == 2 + (question == FRAGE or sentences is GERMAN)
    assert reads == expected
