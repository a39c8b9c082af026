"""Training of an in-context retriever."""

import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from spscanner_rag.lab.in_context.batches import ColumnSupply, TeacherOf, batch_of, word_scores
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.objective import Weights, batch_losses
from spscanner_rag.lab.training.state_file import read_tensors, write_tensors

STATE_FILE = "block_search_state.pt"


@dataclass(frozen=True, kw_only=True)
class InContextRecipe:
    """The numbers of a run; the defaults are the published ones, for a pre-trained model."""

    steps: int = 10_000
    queries: int = 16
    """Queries of a step; with each come its positive and the hard negatives of the `PassageDraw`."""
    learning_rate: float = 3e-5
    weight_decay: float = 0.01
    warmup_steps: int = 1_000
    auxiliary_weight: float = 0.5
    """Weight of the auxiliary loss at the last step; it rises linearly from 0. 0 leaves the loss out."""
    routing_weight: float = 0.0
    """Weight of the cross-entropy of the right document under softmax_d R(d): a help for a model from nothing."""
    copying_weight: float = 0.0
    """Weight of the cross-entropy of the code at a document's end, which stands at its start: likewise."""
    temperature: float = 1.0
    """Divides the teacher's scores before their softmax."""
    dtype: str = "float32"
    """Arithmetic of matrix products, "float32" or "bfloat16"; weights are float32."""
    save_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that no run can use."""
        for name in ("steps", "queries", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        for name in ("auxiliary_weight", "routing_weight", "copying_weight"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number from 0")
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype is {self.dtype!r}; expected 'float32' or 'bfloat16'")
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number above 0")


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did."""

    step: int  # counted from 1
    loss: float  # of the digits
    auxiliary: float  # this and the next two without their weights; 0 if they were not computed
    routing: float
    copying: float
    tokens: int
    seconds: float


def train(
    model: BlockSearchModel,
    passages: ColumnSupply,
    recipe: InContextRecipe,
    out: Path,
    *,
    teacher: TeacherOf = word_scores,
) -> Iterator[Step]:
    """Train a model in place, reporting each step; ``out`` holds the state, from which a run resumes.

    AdamW with linear warm-up and then a cosine to a tenth of the rate.

    Raises
    ------
    ValueError
        If ``out`` has the state of another recipe or model.
    FloatingPointError
        If the loss is not finite.
    """
    out.mkdir(parents=True, exist_ok=True)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95))
    done = _resume(model, optimizer, recipe, out / STATE_FILE)
    model.train()
    for number in range(done, recipe.steps):
        started = time.perf_counter()
        draw = random.Random(f"{recipe.seed}-{number}")
        torch.manual_seed(draw.getrandbits(31))  # for the sampled digits
        first = number * recipe.queries
        batch = batch_of([passages.column(first + n) for n in range(recipe.queries)], draw, teacher)
        weights = Weights(
            recipe.auxiliary_weight * number / recipe.steps,
            recipe.routing_weight,
            recipe.copying_weight,
            recipe.temperature,
        )
        for group in optimizer.param_groups:
            group["lr"] = _rate(number, recipe)
        optimizer.zero_grad()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            losses = batch_losses(model, batch, weights)
        loss = losses.weighted(weights)
        if not math.isfinite(loss.item()):
            raise FloatingPointError(f"step {number + 1}: the loss is {loss.item()}; lower the learning rate")
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if (number + 1) % recipe.save_every == 0 or number + 1 == recipe.steps:
            state = {"step": number + 1, "recipe": json.dumps(asdict(recipe))}
            tensors = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            write_tensors(out / STATE_FILE, state | tensors)
        tokens = sum(len(model.layout.document(t, 0).ids) for t in batch.texts)
        yield Step(
            number + 1,
            losses.digits.item(),
            losses.auxiliary.item(),
            losses.routing.item(),
            losses.copying.item(),
            tokens,
            time.perf_counter() - started,
        )
    model.eval()


def _resume(
    model: BlockSearchModel, optimizer: torch.optim.Optimizer, recipe: InContextRecipe, path: Path
) -> int:
    """The steps that are done; model and optimizer are then as they were."""
    if not path.exists():
        return 0
    state = read_tensors(
        path, {"step": int, "recipe": str, "model": dict, "optimizer": dict}, device=model.device
    )
    before = json.loads(state["recipe"])
    for name, value in asdict(recipe).items():
        if before.get(name) != value:
            raise ValueError(
                f"{path}: {name} was {before.get(name)} and is now {value}; expected the same recipe, or "
                "another folder"
            )
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        raise ValueError(
            f"{path} is the state of another model: {str(error).splitlines()[-1].strip()}"
        ) from None
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _rate(step: int, recipe: InContextRecipe) -> float:
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    left = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return recipe.learning_rate * (0.1 + 0.9 * (1 + float(np.cos(np.pi * left))) / 2)
