"""Vectors of sentences in their context."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.sentences import SentenceVectors, TokenEncoder, digest_of
from spscanner_rag.scorers import ScanCancelled

SENTENCES = [
    "the keeper wrote the date . ",
    "he signed the treaty . ",
    "it rained ! ",
    "the bell rang twice . ",
] * 4


def ignored(tokens: int) -> None:
    """Take no note of a step."""


@given(arrays(np.float32, (3, 16), elements=st.floats(-10, 10, width=32)))
def test_rounded_vectors_keep_their_cosines(vectors: np.ndarray) -> None:
    question = np.ones(16, np.float32) / 4
    lengths = np.linalg.norm(vectors, axis=1)
    expected = vectors @ question / np.maximum(lengths, 1e-12)
    found = SentenceVectors.of(vectors).cosines(question)
    np.testing.assert_allclose(found[lengths > 1e-3], expected[lengths > 1e-3], atol=0.02)


def test_a_sentence_alone_is_the_mean_of_its_states(encoder: TokenEncoder) -> None:
    states = encoder.model.states([encoder.enclosed(encoder.ids(SENTENCES[0]))])[1:-1].mean(0).numpy()
    vectors = encoder.read(encoder.laid(SENTENCES[:1]), ignored)
    cosine = vectors.cosines(np.asarray(states / np.linalg.norm(states), np.float32))
    assert cosine[0] == pytest.approx(1, abs=0.01)


def test_neighbours_change_a_vector_and_other_texts_do_not(encoder: TokenEncoder) -> None:
    alone = encoder.read(encoder.laid(SENTENCES[:1]), ignored)
    among = encoder.read(encoder.laid(SENTENCES), ignored)
    assert not np.array_equal(alone.rows[0], among.rows[0])
    assert np.array_equal(among.rows, encoder.read(encoder.laid(SENTENCES), ignored).rows)


@pytest.mark.parametrize(
    "sentences", [[], [" "], ["\u200b"], ["x" * 100_000], ["\ud800 a"], ["東京 . ", "Москва"]]
)
def test_any_sentence_has_a_vector(encoder: TokenEncoder, sentences: list[str]) -> None:
    vectors = encoder.read(encoder.laid(sentences), ignored)
    cosines = vectors.cosines(encoder.question("who signed the treaty ?"))
    assert len(cosines) == len(sentences)
    assert np.isfinite(cosines).all()


def test_a_long_question_is_cut(encoder: TokenEncoder) -> None:
    assert np.isfinite(encoder.question("who " * 10_000)).all()


def test_steps_are_reported_and_may_end_the_reading(encoder: TokenEncoder) -> None:
    laid, steps = encoder.laid(SENTENCES * 100), list[int]()
    encoder.read(laid, steps.append)
    assert len(steps) > 1
    assert sum(steps) == laid.tokens

    def stop(tokens: int) -> None:
        raise ScanCancelled("enough")

    with pytest.raises(ScanCancelled):
        encoder.read(laid, stop)


def test_another_tokenizer_is_refused(encoder_file: EncoderFile, tiny_tokenizer: object) -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        encoder_file._replace(tokenizer=tiny_tokenizer).loaded("", "cpu", torch.float32)  # type: ignore[arg-type]


def test_digests_know_where_a_sentence_ends() -> None:
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])
    assert digest_of(["ab"]) == digest_of(("ab",))
