import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spscanner_rag.lab.training.passes import packed_states
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import SOFT_FEATURES, ScannerModel

numba_gradients = pytest.importorskip("spscanner_rag.lab.training.kernels.gradients")


@pytest.mark.parametrize("lengths", [[1], [90, 30, 1, 64]])
def test_states_are_those_of_sequences_read_alone(lengths: list[int]) -> None:
    torch.manual_seed(0)
    config = Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8)
    model = ScannerModel(
        config, match_embedding=True, lexical_prior=True, surroundings=True, soft=True, head=False
    )
    torch.nn.init.normal_(model.backbone.embedding.weight)
    torch.nn.init.normal_(model.soft_match.weight)
    draw = np.random.default_rng(0)
    ids: list[NDArray[np.int32]] = [draw.integers(0, 61, length).astype(np.int32) for length in lengths]
    classes = [draw.integers(0, 6, length).astype(np.int8) for length in lengths]
    features = [draw.random((length, SOFT_FEATURES), np.float32) for length in lengths]
    expected = [
        model(
            torch.from_numpy(row)[None].long(),
            None,
            torch.from_numpy(own)[None].long(),
            match_features=torch.from_numpy(values)[None],
        )[0][0]
        for row, own, values in zip(ids, classes, features, strict=True)
    ]
    model.use_kernels(numba_gradients.NumbaTrainingKernels())
    found = packed_states(model, ids, classes, features)
    for states, alone in zip(found, expected, strict=True):
        torch.testing.assert_close(states, alone, rtol=1e-4, atol=1e-4)
