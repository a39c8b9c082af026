"""Claims are looked up by the encoder of their languages."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.apps.verifying.claim_support import ClaimReader
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.text.segmentation import SentenceSegmenter

TEXT = "Die Brücke steht seit 1911. Es regnete. Der Turm brannte ab."
CLAIM = "The tower burned down."


class OtherEncoder:
    """Finds the last sentence, by cosines on a scale of its own."""

    weights = MeaningWeights(mean=0.8, deviation=0.02)

    def __init__(self, cosines: tuple[float, ...]) -> None:
        self._cosines = np.array(cosines, np.float32)

    def own_vectors(self, vectors: SentenceVectors, sentences: Any) -> SentenceVectors:
        return vectors._replace(encoder="other")

    def cosines(self, query: str, vectors: SentenceVectors) -> NDArray[np.float32]:
        assert vectors.encoder == "other"
        return self._cosines


def reader_with(other: OtherEncoder | None) -> ClaimReader:
    units = SentenceSegmenter().segment(TEXT)
    vectors = SentenceVectors(np.zeros((3, 4), np.int8), np.zeros(3, np.float16), "x")
    document = SimpleNamespace(
        units=units,
        vectors=vectors,
        indexed=SimpleNamespace(sentences=[unit.model_text for unit in units]),
    )
    meaning = SimpleNamespace(
        weights=MeaningWeights(mean=0.04, deviation=0.1),
        of_question=lambda query, vectors: other,
    )
    scanner: Any = SimpleNamespace(meaning=meaning)
    documents: Any = [document]
    return ClaimReader(scanner, documents)


def test_the_encoder_of_both_languages_finds_the_sentence() -> None:
    (evidence,) = reader_with(OtherEncoder((0.8, 0.79, 0.9))).evidence(CLAIM, [])
    start, end = evidence.spans[0]
    assert TEXT[start:end].strip() == "Der Turm brannte ab."


def test_support_does_not_depend_on_the_scale_of_cosines() -> None:
    (far,) = reader_with(OtherEncoder((0.8, 0.79, 0.8))).evidence(CLAIM, [])
    (near,) = reader_with(OtherEncoder((0.8, 0.79, 0.9))).evidence(CLAIM, [])
    (without,) = reader_with(None).evidence(CLAIM, [])
    assert near.support > far.support
    assert abs(far.support - without.support) < 0.05  # 0.8 is that of unrelated texts
