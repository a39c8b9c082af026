"""The optimization loop: examples in, weights out, resumable at any step."""

import json
import math
import os
import pickle
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import group_by_length
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.training.examples import Example, ExampleSource
from spscanner_rag.training.recipe import Recipe

STATE_FILE = "training_state.pt"
LOG_FILE = "log.jsonl"


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one optimizer step did."""

    step: int  # counted from 1
    loss: float
    gradient_norm: float  # before clipping
    learning_rate: float
    tokens_per_second: float


class Trainer:
    """Trains a model on examples; the state on disk is all it needs to go on after a kill.

    Parameters
    ----------
    model : ScannerModel
        With a head, in float32, on the device to train on. Changed in place.
    source : ExampleSource
    recipe : Recipe
    out : Path
        Folder for the state and the log; made if absent. A state found there is resumed.

    Raises
    ------
    ValueError
        If the folder holds the state of another recipe or model.
    """

    def __init__(self, model: ScannerModel, source: ExampleSource, recipe: Recipe, out: Path) -> None:
        self.model, self.source, self.recipe, self.out = model, source, recipe, out
        self.teacher_head = nn.Linear(model.config.d_model, 1) if recipe.teacher else None
        if self.teacher_head is not None:
            nn.init.zeros_(self.teacher_head.weight)
            self.teacher_head.to(model.device)
        self.step = 0
        self.seconds = 0.0
        self.average = {name: value.detach().clone() for name, value in model.named_parameters()}
        self.optimizer = torch.optim.AdamW(
            self._parameter_groups(), lr=recipe.learning_rate, betas=(recipe.betas[0], recipe.betas[1])
        )
        out.mkdir(parents=True, exist_ok=True)
        if (out / STATE_FILE).exists():
            self._restore()

    def run(self, until: int | None = None) -> Iterator[StepReport]:
        """Train up to step ``until`` (default: the recipe's last), reporting after each step."""
        last = self.recipe.steps if until is None else until
        self.model.train()
        while self.step < last:
            report = self._one_step()
            self._log(report)
            if self.step % self.recipe.save_every == 0 or self.step == last:
                self.save()
            yield report

    def averaged_weights(self) -> dict[str, Tensor]:
        """The weights to keep: their moving average, or the last ones if the recipe wants none."""
        if self.recipe.ema_decay:
            return self.average
        return {name: value.detach() for name, value in self.model.named_parameters()}

    def save(self) -> None:
        """Write the state; the file is whole or not there."""
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "recipe": json.dumps(self.recipe.to_dict()),
            "model": self.model.state_dict(),
            "teacher_head": self.teacher_head.state_dict() if self.teacher_head else {},
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
        }
        unfinished = self.out / (STATE_FILE + ".part")
        torch.save(state, unfinished)
        os.replace(unfinished, self.out / STATE_FILE)

    def _one_step(self) -> StepReport:
        started = time.perf_counter()
        recipe, number = self.recipe, self.step
        length = random.Random(f"{recipe.seed}-length-{number}").choice(recipe.sequence_tokens)
        first = number * recipe.sequences_per_step
        examples = [self.source.example(first + i, length) for i in range(recipe.sequences_per_step)]
        rate = learning_rate_at(number, recipe)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        lengths = [len(example.sequence.input_ids) for example in examples]
        total_units = sum(len(example.relevant) for example in examples)
        loss = 0.0
        for group in group_by_length(lengths, recipe.tokens_per_pass):
            part = self._loss([examples[i] for i in group], total_units)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.item()
        norm = nn.utils.clip_grad_norm_(self._parameters(), recipe.gradient_clip)
        if not math.isfinite(loss) or not torch.isfinite(norm):
            raise FloatingPointError(
                f"step {number + 1}: loss {loss}, gradient norm {norm.item()}; the last saved state is in "
                f"{self.out}; lower the learning rate or the sequence length and start again"
            )
        self.optimizer.step()
        self.step += 1
        self._average()
        elapsed = time.perf_counter() - started
        self.seconds += elapsed
        return StepReport(self.step, loss, norm.item(), rate, sum(lengths) / elapsed)

    def _loss(self, examples: Sequence[Example], total_units: int) -> Tensor:
        """Return this pass's share of the step's loss."""
        recipe, device = self.recipe, self.model.device
        longest = max(len(example.sequence.input_ids) for example in examples)
        width = -(-longest // CHUNK_TOKENS) * CHUNK_TOKENS  # whole chunks: no copies for padding
        ids = _stacked([example.sequence.input_ids for example in examples], width, device)
        classes = [e.sequence.match_classes for e in examples if e.sequence.match_classes is not None]
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            hidden, _ = self.model(ids, None, _stacked(classes, width, device) if classes else None)
        loss = torch.zeros((), device=device)
        for row, example in zip(hidden, examples, strict=True):
            ends = row[torch.from_numpy(example.sequence.positions).to(device)].float()  # (units, d_model)
            prior = None
            if example.sequence.prior is not None:
                prior = torch.from_numpy(example.sequence.prior).to(device)
            logits = self.model.score(ends, prior)  # (units,)
            relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)
            weight = torch.tensor(recipe.positive_weight, device=device)
            loss = (
                loss
                + F.binary_cross_entropy_with_logits(logits, relevant, pos_weight=weight, reduction="sum")
                / total_units
            )
            if recipe.ranking_weight and relevant.any():
                ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
                loss = loss + recipe.ranking_weight * ranking / recipe.sequences_per_step
            if self.teacher_head is not None and example.teacher is not None:
                cosines = torch.from_numpy(example.teacher).to(device)
                error = F.mse_loss(self.teacher_head(ends)[:, 0], cosines * TEACHER_SCALE, reduction="sum")
                loss = loss + recipe.teacher_weight * error / total_units
        return loss

    def _average(self) -> None:
        if not self.recipe.ema_decay:
            return
        # the plain mean of the first weights, so that the random start is forgotten
        decay = min(self.recipe.ema_decay, self.step / (self.step + 10))
        with torch.no_grad():
            for name, value in self.model.named_parameters():
                self.average[name].lerp_(value, 1 - decay)

    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _parameter_groups(self) -> list[dict[str, Any]]:
        parameters = list(self.model.parameters())
        if self.teacher_head is not None:
            parameters += list(self.teacher_head.parameters())
        return [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": self.recipe.weight_decay},
            {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
        ]

    def _log(self, report: StepReport) -> None:
        record = {
            "step": report.step,
            "loss": round(report.loss, 5),
            "gradient_norm": round(report.gradient_norm, 4),
            "learning_rate": report.learning_rate,
            "tokens_per_second": round(report.tokens_per_second),
        }
        with (self.out / LOG_FILE).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def _restore(self) -> None:
        path = self.out / STATE_FILE
        try:
            state = torch.load(path, map_location=self.model.device, weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{path} cannot be read ({str(error).splitlines()[0]}); delete it to start anew"
            ) from None
        if state["recipe"] != json.dumps(self.recipe.to_dict()):
            raise ValueError(
                f"{path} is the state of a run with another recipe; give that recipe to resume it, "
                "or another --out to start anew"
            )
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError as error:
            raise ValueError(
                f"{path} is the state of another model: {str(error).splitlines()[-1].strip()}"
            ) from None
        if self.teacher_head is not None:
            self.teacher_head.load_state_dict(state["teacher_head"])
        self.average = state["average"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        log = self.out / LOG_FILE  # without the steps that will be taken again
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
        log.write_text("".join(lines[: self.step]), encoding="utf-8")


TEACHER_SCALE = 4.0
"""Cosines of sentences differ by a few tenths; times this they have a spread of about one."""


def learning_rate_at(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then a cosine from the peak to the final rate; ``step`` counts from 0."""
    warmup = max(1, round(recipe.warmup_share * recipe.steps))
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, recipe.steps - warmup)
    span = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + span * (1 + math.cos(math.pi * done)) / 2


def _stacked(rows: Sequence[np.ndarray[Any, Any]], width: int, device: torch.device) -> Tensor:
    """Rows of ids as one tensor with zeros after their ends: (rows, width)."""
    stacked = np.zeros((len(rows), width), np.int64)
    for target, row in zip(stacked, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(stacked).to(device)
