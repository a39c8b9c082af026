"""Vectors of sentences in their context, from the states of their tokens."""

import numpy as np
import pytest
import torch

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.scorers import ScanCancelled

SENTENCES = [
    "the keeper wrote the date . ",
    "he signed the treaty . ",
    "it rained ! ",
    "the bell rang twice . ",
] * 4


def test_a_sentence_alone_is_the_mean_of_its_states(encoder: TokenEncoder) -> None:
    states = (
        encoder.model.states([encoder.enclosed(encoder.ids(SENTENCES[0]))])[1:-1]
        .mean(0)
        .numpy()
    )
    vectors = encoder.vectors(SENTENCES[:1])
    cosine = vectors.cosines(np.asarray(states / np.linalg.norm(states), np.float32))
    assert cosine[0] == pytest.approx(1, abs=0.01)


def test_neighbours_change_a_vector_and_other_texts_do_not(
    encoder: TokenEncoder,
) -> None:
    alone = encoder.vectors(SENTENCES[:1])
    among = encoder.vectors(SENTENCES)
    assert not np.array_equal(alone.rows[0], among.rows[0])
    assert np.array_equal(among.rows, encoder.vectors(SENTENCES).rows)


@pytest.mark.parametrize(
    "sentences",
    [[], [" "], ["\u200b"], ["x" * 100_000], ["\ud800 a"], ["東京 . ", "Москва"]],
)
def test_any_sentence_has_a_vector(encoder: TokenEncoder, sentences: list[str]) -> None:
    vectors = encoder.vectors(sentences)
    cosines = vectors.cosines(encoder.question("who signed the treaty ?"))
    assert len(cosines) == len(sentences)
    assert np.isfinite(cosines).all()


def test_a_long_question_is_cut(encoder: TokenEncoder) -> None:
    assert np.isfinite(encoder.question("who " * 10_000)).all()


def test_steps_are_reported_and_may_end_the_reading(encoder: TokenEncoder) -> None:
    expected, steps = list[int](), list[int]()
    encoder.vectors(SENTENCES * 100, expected.append, steps.append)
    assert len(steps) > 1
    assert [sum(steps)] == expected

    def stop(tokens: int) -> None:
        raise ScanCancelled("enough")

    with pytest.raises(ScanCancelled):
        encoder.vectors(SENTENCES, after_step=stop)


def test_another_tokenizer_is_refused(
    encoder_file: EncoderFile, tiny_tokenizer: object
) -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        encoder_file._replace(tokenizer=tiny_tokenizer).loaded("", "cpu", torch.float32)  # type: ignore[arg-type]
