"""Models small enough to read thousands of random sequences with."""

import pytest
import torch

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

CONFIG = Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8)


def random_model(config: Mamba2Config, seed: int = 0, **channels: bool) -> ScannerModel:
    """A model whose weights are all random, and large enough to matter."""
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = ScannerModel(config, **channels)
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=random)
            if name.endswith(("A_log", "dt_bias")):
                weight.add_(noise, alpha=0.1)
            elif name.endswith(("norm.weight", "norm_f.weight", ".D")):
                weight.copy_(1 + 0.3 * noise)
            elif "embedding" in name:
                weight.copy_(noise)
            else:
                weight.copy_(noise / max(2, weight.shape[-1]) ** 0.5)
    return model.eval()


@pytest.fixture(scope="session")
def models() -> dict[bool, ScannerModel]:
    """Models by whether they have a lexical channel."""
    parts = ("match_embedding", "lexical_prior", "surroundings", "soft")
    return {
        has: random_model(CONFIG, **dict.fromkeys(parts, has)) for has in (False, True)
    }
