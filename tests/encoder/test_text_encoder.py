"""Vectors of sentences by the user's embedding objects."""

from collections.abc import Sequence

import numpy as np
import pytest

from spscanner_rag.encoder.text_encoder import TextEncoder


class Words:
    """A LangChain-like embedder with one dimension for each of a few words.

    It may fail at its n-th call.
    """

    KNOWN = ("treaty", "ship", "bell", "rain")

    def __init__(self, fails_at: int = 0, value: float = 1.0) -> None:
        self.calls, self.fails_at, self.value = list[list[str]](), fails_at, value

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Count words."""
        self.calls.append(list(texts))
        if len(self.calls) == self.fails_at:
            raise ConnectionError("the service is gone")
        return [
            [0.1 + self.value * text.count(word) for word in self.KNOWN]
            for text in texts
        ]

    def embed_query(self, text: str) -> list[float]:
        """The same for one text."""
        return [0.1 + self.value * text.count(word) for word in self.KNOWN]


def test_a_sentence_is_itself_and_its_context() -> None:
    encoder = TextEncoder(Words())
    cosines = encoder.vectors(["the treaty. ", "a bell. ", "rain"]).cosines(
        encoder.question("which treaty?")
    )
    assert cosines.argmax() == 0
    assert cosines[1] > TextEncoder(Words()).question("bell") @ encoder.question(
        "treaty"
    )


def test_nothing_is_embedded_twice_after_a_failure() -> None:
    words = Words(fails_at=2)
    encoder = TextEncoder(words)
    sentences = [f"treaty number {number}. " for number in range(100)]
    with pytest.raises(ConnectionError):
        encoder.vectors(sentences)
    vectors = encoder.vectors(sentences)
    assert len(vectors.rows) == 100
    asked = [
        text for number, call in enumerate(words.calls) if number != 1 for text in call
    ]
    assert len(asked) == len(set(asked))


def test_what_is_not_finite_is_refused_with_its_text() -> None:
    encoder = TextEncoder(Words(value=float("nan")))
    with pytest.raises(ValueError, match=r"NaN or infinity.*treaty"):
        encoder.vectors(["the treaty"])


def test_other_objects_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"embedder is int; expected a model name.*LangChain"
    ):
        TextEncoder(3)


def test_names_tell_embedders_apart() -> None:
    assert TextEncoder(Words()).digest == TextEncoder(Words()).digest
    assert TextEncoder(Words()).digest != TextEncoder(np.asarray).digest
