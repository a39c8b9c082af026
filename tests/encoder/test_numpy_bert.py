"""The encoder in numpy computes what it computes in torch."""

from collections.abc import Sequence

import numpy as np
import pytest

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.checkpoint.save import quantized
from spscanner_rag.encoder.bert import restored
from spscanner_rag.encoder.numpy_bert import NumpyBert, restored_arrays
from spscanner_rag.encoder.numpy_token_encoder import NumpyTokenEncoder
from spscanner_rag.encoder.token_encoder import TokenEncoder
from tests.encoder.test_token_encoder import SENTENCES

WINDOWS = [[2, 5, 9, 6, 3], [2, 3], [2, *range(5, 25), 3]]


@pytest.fixture(scope="module")
def model(encoder_file: EncoderFile) -> NumpyBert:
    arrays = {name: weight.numpy() for name, weight in encoder_file.weights.items()}
    return NumpyBert(encoder_file.shape, restored_arrays(arrays))


@pytest.mark.parametrize("second", [None, [3, 1, 9]])
def test_states_are_those_of_torch(
    model: NumpyBert, encoder: TokenEncoder, second: Sequence[int] | None
) -> None:
    states = model.states(WINDOWS, second)
    assert states.dtype == np.float32
    expected = encoder.model.states(WINDOWS, second).numpy()
    assert np.abs(states - expected).max() < 2e-5


def test_weights_in_bytes_are_restored_as_in_torch(encoder_file: EncoderFile) -> None:
    stored = quantized(restored(encoder_file.weights))
    arrays = restored_arrays({name: weight.numpy() for name, weight in stored.items()})
    expected = restored(stored)
    assert arrays.keys() == expected.keys()
    for name, weight in expected.items():
        assert np.array_equal(arrays[name], weight.numpy()), name


@pytest.mark.parametrize("options", [{}, {"alone": 0.7, "passage_prefix": "passage: "}])
def test_vectors_are_those_of_torch(
    model: NumpyBert,
    encoder_file: EncoderFile,
    encoder: TokenEncoder,
    options: dict[str, float | str],
) -> None:
    in_numpy = NumpyTokenEncoder(model, encoder_file.tokenizer, "", **options)  # type: ignore[arg-type]
    in_torch = TokenEncoder(encoder.model, encoder_file.tokenizer, "", **options)  # type: ignore[arg-type]
    question = "who signed the treaty ?"
    assert in_numpy.question(question) == pytest.approx(
        in_torch.question(question), abs=1e-5
    )
    steps = list[int]()
    vectors = in_numpy.vectors(SENTENCES, after_step=steps.append)
    expected = in_torch.vectors(SENTENCES)
    assert np.abs(vectors.rows.astype(int) - expected.rows).max() <= 1
    assert vectors.scales == pytest.approx(expected.scales, rel=2e-3)
    assert sum(steps) > 0


def test_the_state_of_the_first_token_may_be_the_vector(
    model: NumpyBert, encoder_file: EncoderFile
) -> None:
    encoder = NumpyTokenEncoder(model, encoder_file.tokenizer, "", first_token=True)
    ids = encoder.enclosed(encoder.question_ids("who signed ?"))
    assert np.array_equal(encoder.question_state(ids), model.states([ids])[0])
