"""Training of an in-context retriever."""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from spscanner_rag.lab.in_context.layout import draw_codes
from spscanner_rag.lab.in_context.losses import Batch, batch_losses
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.data.questions import bm25_scores
from spscanner_rag.lab.training.state_file import read_tensors, refuse_other_shapes, write_tensors
from spscanner_rag.lexical.words import index_words

STATE_FILE = "block_search_state.pt"


def word_scores(column: PassageColumn) -> Sequence[float]:
    """Score the passages of a column as a teacher: by BM25 among themselves, the labelled one above the best."""
    scores = bm25_scores(index_words(column.passages), column.question)
    scores[0] = scores.max() + 1.0
    return [float(score) for score in scores]


def batch_of(columns: Sequence[PassageColumn], draw: random.Random) -> Batch:
    """Make a batch whose codes are drawn anew; a passage of several columns is one document."""
    texts = list(dict.fromkeys(text for column in columns for text in column.passages))
    draw.shuffle(texts)
    place = {text: number for number, text in enumerate(texts)}
    return Batch(
        texts,
        draw_codes(len(texts), draw),
        [column.question for column in columns],
        [[place[text] for text in column.passages] for column in columns],
        [word_scores(column) for column in columns],
    )


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
    temperature: float = 1.0
    """Divides the teacher's scores before their softmax."""
    dtype: str = "float32"
    """Arithmetic of matrix products, "float32" or "bfloat16"; weights are float32."""
    save_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that no run can use."""
        checks: Sequence[tuple[str, str, Callable[[Any], bool]]] = (
            ("steps queries save_every", "at least 1", lambda value: value >= 1),
            ("auxiliary_weight", "a number from 0", lambda value: value >= 0),
            ("learning_rate temperature", "a number above 0", lambda value: value > 0),
            ("dtype", "'float32' or 'bfloat16'", lambda value: value in ("float32", "bfloat16")),
        )
        for names, expected, is_right in checks:
            for name in names.split():
                if not is_right(value := getattr(self, name)):
                    raise ValueError(f"{name} is {value!r}; expected {expected}")


@dataclass(frozen=True, slots=True)
class Step:
    """The numbers of one step."""

    step: int  # counted from 1
    loss: float  # of the digits
    auxiliary: float  # without its weight; 0 if it was not computed
    tokens: int
    seconds: float


def train(
    model: BlockSearchModel, passages: PassageDraw, recipe: InContextRecipe, out: Path
) -> Iterator[Step]:
    """Train a model in place, reporting each step; ``out`` holds the state, from which a run resumes.

    AdamW with linear warm-up and then a cosine to a tenth of the rate.
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
        batch = batch_of([passages.column(first + n) for n in range(recipe.queries)], draw)
        rising = recipe.auxiliary_weight * number / recipe.steps
        for group in optimizer.param_groups:
            group["lr"] = _rate(number, recipe)
        optimizer.zero_grad()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            losses = batch_losses(model, batch, bool(rising), recipe.temperature)
        loss = losses.digits + rising * losses.auxiliary
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
        digits, auxiliary = (value.item() for value in losses)
        yield Step(number + 1, digits, auxiliary, tokens, time.perf_counter() - started)
    model.eval()


def _resume(
    model: BlockSearchModel, optimizer: torch.optim.Optimizer, recipe: InContextRecipe, path: Path
) -> int:
    """Bring model and optimizer to where the run stopped, and return the number of steps that are done."""
    if not path.exists():
        return 0
    kinds = {"step": int, "recipe": str, "model": dict, "optimizer": dict}
    state = read_tensors(path, kinds, device=model.device)
    before = json.loads(state["recipe"])
    for name, value in asdict(recipe).items():
        if before.get(name) != value:
            raise ValueError(
                f"{path}: {name} was {before.get(name)} and is now {value}; expected the same recipe, or "
                "another folder"
            )
    refuse_other_shapes(path, state["model"], model.state_dict())
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _rate(step: int, recipe: InContextRecipe) -> float:
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    left = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return recipe.learning_rate * (0.1 + 0.9 * (1 + float(np.cos(np.pi * left))) / 2)
