"""The optimization loop, which turns examples into weights.

It also writes a log, and a state from which an interrupted run resumes.
"""

import json
import math
import pickle
import random
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from spscanner_lab.training.processes import Processes
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.mamba2.backends import BackendChoice, choose_backend
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import keep_freed_memory
from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.whole_files import whole_file, write_whole
from spscanner_rag.text.escaping import first_line

STATE_FILE = "training_state.pt"
START_AGAIN = "delete it to start again, or give another --out"

LOG_FILE = "log.jsonl"
BETAS = (0.9, 0.95)  # AdamW's, as in the paper
STEPS_AHEAD = 4  # steps that each process draws in advance

_STATE_TYPES = {"step": int, "recipe": str, "inputs": str, "seconds": float}
_STATE_TYPES |= dict.fromkeys(("model", "average", "optimizer", "best"), dict)


def read_state(
    out: Path,
    recipe: Recipe,
    inputs: Mapping[str, str],
    device: torch.device | str = "cpu",
) -> dict[str, Any] | None:
    """Read the saved state of a run with this recipe and these inputs.

    None if there is none.

    Raises ``ValueError`` if it is damaged or of another run. Inputs that are not given
    are not compared.
    """
    path = out / STATE_FILE
    if not path.exists():
        return None
    try:
        state = _loaded(path, device)
        differences = {
            "recipe": recipe.difference(json.loads(state["recipe"])),
            "inputs": _changed_input(json.loads(state["inputs"]), inputs),
        }
    except Exception as error:  # on a damaged stream the unpickler may raise anything
        reason = getattr(error, "strerror", None) or first_line(error)
        # torch's message gives advice for another case
        if isinstance(error, pickle.UnpicklingError):
            reason = "it holds objects other than tensors and numbers"
        raise ValueError(
            f"{path} cannot be read ({reason}): it is damaged, or another program wrote"
            f" it; {START_AGAIN}"
        ) from None
    for what, difference in differences.items():
        if difference is not None:
            raise ValueError(
                f"{path} is the state of another run ({what}: {difference}); give the"
                " same again to resume it, or another --out to start again"
            )
    return state


def _changed_input(saved: Mapping[str, str], inputs: Mapping[str, str]) -> str | None:
    """How the first changed input differs from its saved digest, or None."""
    for option, digest in inputs.items():
        if saved.get(option) != digest:
            return f"{option} has other content than when the state was saved"
    return None


def _loaded(path: Path, device: torch.device | str) -> dict[str, Any]:
    """Load a state.

    ``ValueError`` for other kinds of files, and for a wrong CRC32, which torch ignores.
    """
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            if path.stat().st_size:
                raise ValueError("it is not a complete archive of torch.save")
            raise ValueError("it is empty")
        damaged = zipfile.ZipFile(file).testzip()
        if damaged is not None:
            raise ValueError(f"the CRC32 of its part {damaged} is wrong")
    state = torch.load(path, map_location=device, weights_only=True)
    if not isinstance(state, dict):
        raise ValueError(f"it holds a {type(state).__name__}, not an object")
    for key, expected in _STATE_TYPES.items():
        if not isinstance(state.get(key), expected):
            raise ValueError(f"it has no {key!r} of type {expected.__name__}")
    return state


class StepReport(NamedTuple):
    """The numbers of one optimizer step."""

    step: int  # counted from 1
    loss: float
    gradient_norm: float  # before clipping
    learning_rate: float
    tokens: int
    tokens_per_second: float


class Objective(Protocol):
    """An endless, repeatable supply of training examples, and their loss."""

    def example(self, number: int, length: int) -> Any:  # noqa: ANN401 - its own kind
        """Example ``number``, about ``length`` tokens long.

        The same in every run and every process.
        """

    def tokens(self, example: Any) -> int:  # noqa: ANN401
        """The number of tokens in an example."""

    splits: bool
    """Whether several processes may read one step: whether its loss is a sum over
    examples."""

    def losses(
        self,
        model: Any,  # noqa: ANN401 - its own kind
        examples: Sequence[Any],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The parts of a step's loss, one for each forward pass.

        They are those of the examples with these numbers.
        """


class Trainer:
    """Trains a model, in float32 and in place.

    An interrupted run resumes from the state in ``out``.

    ``workers`` processes draw the examples of coming steps; with 0, a step draws its
    own when it is due. ``fast`` are weights that are trained at ten times the rate.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        recipe: Recipe,
        out: Path,
        workers: int = 0,
        inputs: Mapping[str, str] | None = None,
        fast: Iterable[nn.Parameter] = (),
        processes: Processes | None = None,
    ) -> None:
        self.processes = processes or Processes()
        if self.processes.count > 1 and not objective.splits:
            raise ValueError(
                f"got {self.processes.count} processes; expected one: the loss of this "
                "stage compares all examples of a step with each other"
            )
        self.model = model
        self.recipe = recipe
        self.out = out
        self._inputs = dict(inputs or {})
        self._objective = objective
        self._workers = workers
        # optimizer steps done, and the seconds that they took
        self.step = 0
        self.seconds = 0.0
        self.average: dict[str, Tensor] = {}
        if recipe.ema_decay:
            for name, value in model.named_parameters():
                self.average[name] = value.detach().clone()
        self.best: dict[str, Any] = {}  # step, value and weights of the best validation
        self.optimizer = new_optimizer(model, recipe, fast)
        out.mkdir(parents=True, exist_ok=True)
        self._restore()
        self.kernels = BackendChoice(TORCH_KERNELS, "of another library's model")
        if isinstance(model, ScannerModel):
            self.kernels = choose_training_kernels(model.device)
            model.use_kernels(self.kernels.kernels)
            # plain torch keeps 15 MB per token at 1.3b, more than a GPU holds; the CPU
            # kernels keep little
            model.backbone.recomputes = model.device.type != "cpu"
        # one object per step and per validation, each with its "step"
        self.log = out / LOG_FILE
        self.processes.check_step(self.step)
        if self.processes.leads:
            keep_until(self.log, self.step)

    def run(self) -> Iterator[StepReport]:
        """Train to the recipe's last step, yielding a report after each step."""
        steps = range(self.step, self.recipe.steps)
        self.model.train()
        keep_freed_memory()
        started = time.perf_counter()
        for drawn in drawn_steps(self._objective, self.recipe, steps, self._workers):
            report = self._one_step(drawn, started)
            if self.processes.leads:
                append_records(self.log, [report._asdict()])
            is_last = self.step == self.recipe.steps
            if is_last or self.step % self.recipe.save_every == 0:
                self.save()
            yield report
            started = time.perf_counter()

    def averaged_weights(self) -> dict[str, Tensor]:
        """The weights to save.

        Their moving average or, without ``ema_decay``, the last ones.
        """
        if self.recipe.ema_decay:
            return self.average
        return {name: value.detach() for name, value in self.model.named_parameters()}

    def offer(self, value: float) -> None:
        """Copy the weights if ``value``, from a validation, is the highest so far."""
        if not self.best or value > self.best["value"]:
            weights = {}
            for name, weight in self.averaged_weights().items():
                weights[name] = weight.clone()
            self.best = {"step": self.step, "value": float(value), "weights": weights}
            self.save()

    def save(self) -> None:
        """Write the state, whole or not at all.

        Of several processes, the leader does. After an ``OSError`` the previous state
        is still there.
        """
        if not self.processes.leads:
            return
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "recipe": json.dumps(asdict(self.recipe)),
            "inputs": json.dumps(self._inputs),
            "model": self.model.state_dict(),
            "average": self.average,
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
        }
        with (
            whole_file(self.out / STATE_FILE) as unfinished,
            unfinished.open("wb") as file,
        ):
            try:
                torch.save(state, file)
            except RuntimeError as error:
                # torch hides a full disk behind its own error
                if isinstance(error.__context__, OSError):
                    raise error.__context__ from None
                raise

    def _one_step(self, examples: list[Any], started: float) -> StepReport:
        """Train on a batch.

        ``started`` is when the loop began to draw the batch or to wait for it.
        """
        lengths = [self._objective.tokens(example) for example in examples]
        tokens = sum(lengths)
        recipe = self.recipe
        number = self.step
        rate = learning_rate_at(number, recipe)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("times", 1)
        self.optimizer.zero_grad()
        loss = 0.0
        numbers = self.processes.share(lengths)
        for part in self._objective.losses(self.model, examples, numbers):
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.item()
        parameters: list[nn.Parameter] = []
        for group in self.optimizer.param_groups:
            parameters.extend(group["params"])
        loss = self.processes.add_up(parameters, loss)
        norm = nn.utils.clip_grad_norm_(parameters, recipe.gradient_clip)
        if not math.isfinite(loss) or not torch.isfinite(norm):
            raise FloatingPointError(
                f"step {number + 1}: loss {loss}, gradient norm {norm.item()}; the last"
                f" saved state is in {self.out}; lower the learning rate or the"
                " sequence length and start again"
            )
        self.optimizer.step()
        self.step += 1
        if recipe.ema_decay:
            # nearly a plain mean in the first steps, so that the average forgets the
            # random start
            decay = min(recipe.ema_decay, self.step / (self.step + 10))
            with torch.no_grad():
                for name, value in self.model.named_parameters():
                    self.average[name].lerp_(value, 1 - decay)
        elapsed = time.perf_counter() - started
        self.seconds += elapsed
        return StepReport(self.step, loss, norm.item(), rate, tokens, tokens / elapsed)

    def _restore(self) -> None:
        path = self.out / STATE_FILE
        state = read_state(
            self.out, self.recipe, self._inputs, next(self.model.parameters()).device
        )
        if state is None:
            return
        try:
            self.optimizer.load_state_dict(state["optimizer"])
            names = dict(self.model.named_parameters()).keys()
            for weights in (state["average"], state["best"].get("weights")):
                if not weights:
                    continue
                if weights.keys() != names:
                    raise KeyError("it lacks some weights of the model, or has others")
                # raises if a shape differs
                self.model.load_state_dict(weights, strict=False)
            self.model.load_state_dict(state["model"])
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise ValueError(
                f"{path} fits another model or optimizer ({reason}); {START_AGAIN}"
            ) from None
        self.average = state["average"]
        self.best = state["best"]
        self.step = state["step"]
        self.seconds = state["seconds"]


def keep_until(log: Path, step: int) -> None:
    """Drop the records after ``step``, which the run will repeat, from a log."""
    remaining = []
    for _, line in complete_lines(log):
        # a line that is not a record is dropped
        with suppress(ValueError, TypeError, KeyError):
            if json.loads(line)["step"] <= step:
                remaining.append(line)
    if log.exists():
        write_whole(log, b"".join(remaining))


def learning_rate_at(step: int, recipe: Recipe) -> float:
    """The learning rate of a step, counted from 0.

    A linear warm-up, then the recipe's schedule down to the final rate.

    "constant" stays at the peak until the last ``cooldown_share`` of the steps and then
    falls as 1 minus a square root (Hägele et al. 2024, "Scaling laws and
    compute-optimal training beyond fixed training durations").
    """
    warmup = max(1, round(recipe.warmup_share * recipe.steps))
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.schedule == "constant":
        cooldown = round(recipe.cooldown_share * recipe.steps)
        done = max(0.0, (step - (recipe.steps - cooldown)) / max(1, cooldown))
        remaining = 1 - math.sqrt(done)
    else:
        done = (step - warmup) / max(1, recipe.steps - warmup)
        if recipe.schedule == "linear":
            remaining = 1 - done
        else:
            remaining = (1 + math.cos(math.pi * done)) / 2
    fall = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + fall * remaining


def new_optimizer(
    model: nn.Module, recipe: Recipe, fast: Iterable[nn.Parameter] = ()
) -> torch.optim.Optimizer:
    """AdamW for all weights, with weight decay on matrices only.

    Norms, biases and the decays ``A_log`` have none.
    """
    fast_by_id = {id(parameter): parameter for parameter in fast}
    matrices = []
    others = []
    for parameter in model.parameters():
        if not parameter.requires_grad or id(parameter) in fast_by_id:
            continue
        if parameter.dim() > 1:
            matrices.append(parameter)
        else:
            others.append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    if fast_by_id:
        groups.append(
            {"params": list(fast_by_id.values()), "weight_decay": 0.0, "times": 10}
        )
    # fused: one pass over weights, gradients and moments instead of a dozen
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=BETAS, fused=True)


def choose_training_kernels(device: torch.device) -> BackendChoice:
    """Choose kernels with gradients: on a CPU with numba, the kernels that it compiles.

    Otherwise plain torch.
    """
    if device.type != "cpu":
        return BackendChoice(
            TORCH_KERNELS, "the other kernels with gradients are for CPUs"
        )
    choice = choose_backend("auto", device)
    if choice.kernels.name == "numba":
        from spscanner_lab.training.kernels.gradients import (
            NumbaTrainingKernels,  # needs numba
        )

        choice = choice._replace(kernels=NumbaTrainingKernels())
    return choice


def drawn_steps(
    objective: Objective, recipe: Recipe, steps: range, workers: int
) -> Iterator[list[Any]]:
    """The examples of each step (from 0), in order.

    ``workers`` processes, if any, draw them in advance.
    """
    options: dict[str, Any] = {}
    if workers:
        # documents and tokenizer are shared, not copied
        options["multiprocessing_context"] = "fork"
        options["prefetch_factor"] = STEPS_AHEAD
    yield from DataLoader(
        _Steps(objective, recipe),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        collate_fn=lambda drawn: drawn,  # the default turns arrays into tensors
        **options,
    )


class _Steps(Dataset[list[Any]]):
    def __init__(self, objective: Objective, recipe: Recipe) -> None:
        self._objective = objective
        self._recipe = recipe

    def __getitem__(self, step: int) -> list[Any]:
        recipe = self._recipe
        count = recipe.sequences_per_step
        draw = random.Random(f"{recipe.seed}-length-{step}")
        length = draw.choice(recipe.sequence_tokens)
        numbers = range(step * count, (step + 1) * count)
        return [self._objective.example(number, length) for number in numbers]
