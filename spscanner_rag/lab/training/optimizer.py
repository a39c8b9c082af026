"""The optimizers of a run, each for its own kind of weights."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.layers import Mamba2Mixer
from spscanner_rag.mamba2.model import ScannerModel


def new_optimizers(model: ScannerModel, extra: nn.Module, recipe: Recipe) -> dict[str, Optimizer]:
    """The optimizers of the recipe by name: AdamW for all weights or, with Muon, for those that Muon leaves.

    Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks") trains the projections of
    the layers. By Newton-Schulz iterations it turns the momentum of each of these matrices, U S V', into U V', so
    that all directions change equally. An update has the size of AdamW's, so that both share a learning rate (Liu
    et al. 2025, "Muon is scalable for LLM training").

    Raises
    ------
    ValueError
        If this version of torch has no Muon.
    """
    projections = []
    if recipe.optimizer == "muon":
        mixers = [module for module in model.modules() if isinstance(module, Mamba2Mixer)]
        projections = [matrix for mixer in mixers for matrix in (mixer.in_proj.weight, mixer.out_proj.weight)]
    taken = {id(matrix) for matrix in projections}
    others = [p for module in (model, extra) for p in module.parameters() if id(p) not in taken]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in others if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in others if p.dim() <= 1], "weight_decay": 0.0},
    ]
    betas = (recipe.betas[0], recipe.betas[1])
    optimizers: dict[str, Optimizer] = {
        # fused: one pass over weights, gradients and moments instead of a dozen
        "optimizer": torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=betas, fused=True)
    }
    if projections:
        optimizers["muon"] = _muon(projections, recipe)
    return optimizers


def load_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Load what an optimizer knew; how it computes stays its own, whatever version saved the state.

    Raises what ``load_state_dict`` raises for the state of another optimizer.
    """
    own = [group.get("fused") for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    for group, fused in zip(optimizer.param_groups, own, strict=True):
        if "fused" in group:
            group["fused"] = fused


def _muon(matrices: list[Tensor], recipe: Recipe) -> Optimizer:
    if not hasattr(torch.optim, "Muon"):
        raise ValueError(
            f'optimizer is "muon", which torch {torch.__version__} does not have; expected "adamw", or run '
            'pip install "torch>=2.9"'
        )
    return torch.optim.Muon(
        matrices,
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
