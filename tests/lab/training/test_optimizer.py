import re

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from spscanner_rag.lab.training.loop import load_optimizer, new_optimizers
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

NEEDS_MUON = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has no Muon before 2.9")
MODEL = ScannerModel(
    Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8), match_embedding=True
)
EXTRA = nn.Linear(16, 1)


def names(optimizer: Optimizer, *, decayed: bool) -> set[str]:
    """Of the parameters with or without weight decay."""
    known = {id(p): name for name, p in [*MODEL.named_parameters(), *EXTRA.named_parameters("extra")]}
    return {
        known[id(parameter)]
        for group in optimizer.param_groups
        for parameter in group["params"]
        if bool(group["weight_decay"]) == decayed
    }


@pytest.mark.parametrize("optimizer", ["adamw", pytest.param("muon", marks=NEEDS_MUON)])
def test_every_weight_has_one_optimizer_and_only_matrices_decay(optimizer: str) -> None:
    found = new_optimizers(MODEL, EXTRA, Recipe(optimizer=optimizer, weight_decay=0.1)).values()
    trained = [p for one in found for group in one.param_groups for p in group["params"]]
    assert sorted(map(id, trained)) == sorted(map(id, [*MODEL.parameters(), *EXTRA.parameters()]))
    free = set().union(*(names(one, decayed=False) for one in found))
    kinds = {name.rsplit(".", 1)[-1] for name in free}
    assert kinds == {"A_log", "D", "dt_bias", "bias", "weight"}  # weight: of norms
    assert all(p.dim() == 1 for name, p in MODEL.named_parameters() if name in free)
    assert not any(p.dim() == 1 for name, p in MODEL.named_parameters() if name not in free)


@NEEDS_MUON
def test_muon_trains_the_projections_of_the_layers() -> None:
    found = new_optimizers(MODEL, EXTRA, Recipe(optimizer="muon", weight_decay=0.1))
    assert names(found["muon"], decayed=True) == {
        f"backbone.layers.{layer}.mixer.{projection}.weight"
        for layer in range(2)
        for projection in ("in_proj", "out_proj")
    }


def test_a_torch_without_muon_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.optim, "Muon", raising=False)
    with pytest.raises(ValueError, match=re.escape('pip install "torch>=2.9"')):
        new_optimizers(MODEL, EXTRA, Recipe(optimizer="muon"))


def test_a_state_of_an_earlier_version_is_loaded_and_computed_in_one_pass() -> None:
    recipe = Recipe(weight_decay=0.1)
    groups = new_optimizers(MODEL, EXTRA, recipe)["optimizer"].param_groups
    before = torch.optim.AdamW([{**group, "fused": None} for group in groups])
    weights = [p for group in groups for p in group["params"]]
    for parameter in weights:
        parameter.grad = torch.ones_like(parameter)
    kept = [parameter.detach().clone() for parameter in weights]
    before.step()
    found = new_optimizers(MODEL, EXTRA, recipe)["optimizer"]
    load_optimizer(found, before.state_dict())
    assert [group["fused"] for group in found.param_groups] == [True, True]
    assert [found.state[p]["step"].item() for p in weights] == [1.0] * len(weights)
    found.step()
    by_fused = [parameter.detach().clone() for parameter in weights]
    with torch.no_grad():
        for parameter, value in zip(weights, kept, strict=True):
            parameter.copy_(value)
            parameter.grad = torch.ones_like(parameter)
    again = torch.optim.AdamW([{**group, "fused": None} for group in groups])
    again.step()
    again.step()
    for parameter, value in zip(weights, by_fused, strict=True):
        torch.testing.assert_close(value, parameter.detach(), rtol=1e-5, atol=1e-6)
        parameter.grad = None
