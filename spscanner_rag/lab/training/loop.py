"""The optimization loop: from examples to weights and a log; an interrupted run resumes."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spscanner_rag.checkpoint.file_access import first_line
from spscanner_rag.lab.training.ahead import drawn_steps
from spscanner_rag.lab.training.devices import Workers
from spscanner_rag.lab.training.inputs import Inputs
from spscanner_rag.lab.training.kernels.training_kernels import choose_training_kernels
from spscanner_rag.lab.training.log import LOG_FILE, TrainingLog
from spscanner_rag.lab.training.optimizer import load_optimizer, new_optimizers
from spscanner_rag.lab.training.passes import Pass, compile_layers, passes
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.stage import Objective
from spscanner_rag.lab.training.state_file import (
    START_AGAIN,
    STATE_FILE,
    read_state,
    refuse_other_shapes,
    write_tensors,
)
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import keep_freed_memory


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one optimizer step did."""

    step: int  # counted from 1
    loss: float
    gradient_norm: float  # before clipping
    learning_rate: float
    tokens: int
    tokens_per_second: float

    def record(self) -> dict[str, object]:
        """The step's line of the log."""
        rounded = {"loss": round(self.loss, 5), "gradient_norm": round(self.gradient_norm, 4)}
        return asdict(self) | rounded | {"tokens_per_second": round(self.tokens_per_second)}


class Trainer:
    """Trains a model for an objective; an interrupted run resumes from the state on disk.

    Parameters
    ----------
    model : ScannerModel
        In float32, on the device to train on. Changed in place.
    objective, recipe
    out : Path
        Folder for the state and the log; made if absent. A state found there is resumed.
    workers : int, default 0
        Processes that draw the sequences of coming steps; 0 draws each when it is due.
    inputs : Inputs, optional
        What the run learns from, which must be that of a resumed state. Default: it is not compared.
    skipped_steps : int, default 0
        Steps whose examples are left out at the beginning, as `history.steps_before` counts them.
    together : Workers, optional
        The processes that train this model together. Default: this one alone.

    Raises
    ------
    ValueError
        If the folder holds the state of another recipe, model or input, or a damaged one.
    """

    def __init__(
        self,
        model: ScannerModel,
        objective: Objective,
        recipe: Recipe,
        out: Path,
        workers: int = 0,
        inputs: Inputs | None = None,
        skipped_steps: int = 0,
        together: Workers | None = None,
    ) -> None:
        self.together = together or Workers()
        self.model, self.recipe, self.out = model, recipe, out
        self._inputs, self._skipped = inputs, skipped_steps
        self._objective, self._workers = objective, workers
        self._extra = objective.extra.to(model.device)
        self.step, self.seconds = 0, 0.0  # optimizer steps done, and the time that they took
        self.average = {name: value.detach().clone() for name, value in model.named_parameters()}
        self.optimizers = new_optimizers(model, self._extra, recipe)
        out.mkdir(parents=True, exist_ok=True)
        if (out / STATE_FILE).exists():
            self._restore()
        compiled = recipe.compile and model.device.type == "cpu"
        if compiled:
            compile_layers(model)
        self.kernels = choose_training_kernels(model.device, compiled)
        model.use_kernels(self.kernels.kernels)
        self._streams = compiled or model.kernels.packs
        self.log = TrainingLog(out / LOG_FILE)
        if self.together.leads:
            self.log.keep_until(self.step)

    def run(self, until: int | None = None) -> Iterator[StepReport]:
        """Train up to step ``until`` (default: the recipe's last), reporting after each step."""
        last = self.recipe.steps if until is None else until
        self.together.check_step(self.step)
        self.model.train()
        keep_freed_memory()
        started = time.perf_counter()
        steps = range(self._skipped + self.step, self._skipped + last)
        for _, drawn in drawn_steps(self._objective, self.recipe, steps, self._workers):
            report = self._one_step(drawn, started)
            if self.together.leads:
                self.log.append(report.record())
                if self.step % self.recipe.save_every == 0 or self.step == last:
                    self.save()
            yield report
            started = time.perf_counter()

    def averaged_weights(self) -> dict[str, Tensor]:
        """The weights to keep: their moving average or, without `ema_decay`, the last ones."""
        if self.recipe.ema_decay:
            return self.average
        return {name: value.detach() for name, value in self.model.named_parameters()}

    def save(self) -> None:
        """Write the state."""
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "recipe": json.dumps(self.recipe.to_dict()),
            "inputs": json.dumps(self._inputs),
            "model": self.model.state_dict(),
            "extra": self._extra.state_dict(),
            "average": self.average,
            **{name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
        }
        write_tensors(self.out / STATE_FILE, state)

    def _one_step(self, examples: list[Any], started: float) -> StepReport:
        """Train on a batch; ``started`` is the time at which the loop began to draw it or to wait for it."""
        lengths = list(map(self._objective.tokens, examples))
        recipe, number = self.recipe, self.step
        rate = learning_rate_at(number, recipe)
        groups = [group for optimizer in self.optimizers.values() for group in optimizer.param_groups]
        for group in groups:
            group["lr"] = rate
            for parameter in group["params"]:
                parameter.grad = None
        loss = 0.0
        for read in self._own_passes(lengths):
            part = self._objective.loss(self.model, examples, read)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.item()
        parameters = [parameter for group in groups for parameter in group["params"]]
        loss = self.together.add_up(parameters, loss, self.model.device)
        norm = nn.utils.clip_grad_norm_(parameters, recipe.gradient_clip)
        if not math.isfinite(loss) or not torch.isfinite(norm):
            raise FloatingPointError(
                f"step {number + 1}: loss {loss}, gradient norm {norm.item()}; the last saved state is in "
                f"{self.out}; lower the learning rate or the sequence length and start again"
            )
        for optimizer in self.optimizers.values():
            optimizer.step()
        self.step += 1
        if recipe.ema_decay:
            # about the plain mean in the first steps, so that the random start is forgotten
            decay = min(recipe.ema_decay, self.step / (self.step + 10))
            with torch.no_grad():
                for name, value in self.model.named_parameters():
                    self.average[name].lerp_(value, 1 - decay)
        elapsed = time.perf_counter() - started
        self.seconds += elapsed
        return StepReport(self.step, loss, norm.item(), rate, sum(lengths), sum(lengths) / elapsed)

    def _own_passes(self, lengths: Sequence[int]) -> Iterator[Pass]:
        """The passes over the sequences of a step that this process reads."""
        own = self.together.share(lengths)
        for read in passes([lengths[i] for i in own], self.recipe.tokens_per_pass, self._streams):
            yield replace(read, members=[own[i] for i in read.members])

    def _restore(self) -> None:
        path = self.out / STATE_FILE
        state = read_state(self.out, self.recipe, self._inputs, self.model.device, self.optimizers)
        refuse_other_shapes(path, state["model"], self.model.state_dict())
        refuse_other_shapes(path, state["average"], self.average)
        refuse_other_shapes(path, state["extra"], self._extra.state_dict())
        try:
            for name, optimizer in self.optimizers.items():
                load_optimizer(optimizer, state[name])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} is the state of another optimizer ({first_line(error)}); {START_AGAIN}"
            ) from None
        self.model.load_state_dict(state["model"])
        self._extra.load_state_dict(state["extra"])
        self.average = state["average"]
        self.step, self.seconds = state["step"], state["seconds"]


def learning_rate_at(step: int, recipe: Recipe) -> float:
    """The rate of a step, counted from 0: linear warm-up, then the recipe's schedule down to the final rate.

    "constant" stays at the peak until the last ``cooldown_share`` of the steps and then falls as 1 minus a square
    root (Hägele et al. 2024, "Scaling laws and compute-optimal training beyond fixed training durations").
    """
    warmup = recipe.warmup_steps or max(1, round(recipe.warmup_share * recipe.steps))
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.schedule == "constant":
        last = round(recipe.cooldown_share * recipe.steps)
        done = max(0.0, (step - (recipe.steps - last)) / max(1, last))
        left = 1 - math.sqrt(done)
    else:
        done = (step - warmup) / max(1, recipe.steps - warmup)
        left = (1 + math.cos(math.pi * done)) / 2
    return recipe.final_learning_rate + (recipe.learning_rate - recipe.final_learning_rate) * left
