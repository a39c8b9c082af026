"""Models that are small enough to read thousands of random sequences with."""

import pytest
import torch

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

CONFIG = Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8)


def new_model(*, lexical: bool) -> ScannerModel:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ScannerModel(
            CONFIG, match_embedding=lexical, lexical_prior=lexical, surroundings=lexical, soft=lexical
        ).eval()
        assert model.binary_head is not None
        torch.nn.init.normal_(model.backbone.embedding.weight)
        torch.nn.init.normal_(model.binary_head.weight)
        if model.match_embedding is not None:
            torch.nn.init.normal_(model.match_embedding.weight)
        if model.surroundings is not None:
            torch.nn.init.normal_(model.surroundings.weight)
        if model.soft_match is not None and model.soft_prior is not None:
            torch.nn.init.normal_(model.soft_match.weight)
            torch.nn.init.normal_(model.soft_prior.weight, std=0.3)
    return model


@pytest.fixture(scope="session")
def models() -> dict[bool, ScannerModel]:
    """By whether there is a lexical channel."""
    return {False: new_model(lexical=False), True: new_model(lexical=True)}
