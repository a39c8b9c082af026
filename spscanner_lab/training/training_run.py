"""A whole training run: data, model, loop, validation, checkpoint and model card."""

import copy
import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spscanner_lab.training import Notify
from spscanner_lab.training.loop import StepReport, Trainer, read_state
from spscanner_lab.training.processes import Processes
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.embedder import EmbedderStage
from spscanner_lab.training.stages.evidence import EvidenceStage, Validation
from spscanner_lab.training.stages.reranker import RerankerStage
from spscanner_lab.training.stages.transformer_reranker import (
    TransformerStage,
    is_transformer,
)
from spscanner_lab.training.start import RunFiles, check_start, inputs_of
from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.scan.devices import choose
from spscanner_rag.system.json_lines import append_records
from spscanner_rag.system.outputs import check_results_folder

RESULTS = (
    "*.json",
    "*.safetensors",
    "*.txt",
    "README.md",
    "log.jsonl",
    "training_state.pt*",
)
"""Names of the files that a training writes, as patterns; also transformers'."""

OnStep = Callable[[StepReport], object]
OnValidation = Callable[[int, Validation], object]


class TrainingRun:
    """Training of any stage, from files to a checkpoint folder.

    Making a run refuses inputs that it cannot use.

    ``workers`` processes draw the examples of coming steps.
    """

    def __init__(
        self,
        files: RunFiles,
        recipe: Recipe,
        device: torch.device,
        notify: Notify = lambda message: None,
        workers: int = 0,
        processes: Processes | None = None,
    ) -> None:
        if recipe.dtype == "auto":
            recipe = replace(
                recipe, dtype=str(choose(device).dtype).removeprefix("torch.")
            )
        self.files = files
        self.recipe = recipe
        refuse_folder_of_inputs(files)
        check_start(files, recipe)
        inputs = inputs_of(files)
        # refuses another run's state before data is prepared
        read_state(files.out, recipe, inputs)
        stages = {
            "evidence": EvidenceStage,
            "embedder": EmbedderStage,
            "reranker": RerankerStage,
        }
        kind = stages[recipe.stage]
        if kind is RerankerStage and is_transformer(files.base):
            kind = TransformerStage
        self.stage = kind(files, recipe, device, notify)
        if recipe.keep_best and not self.stage.held_out:
            raise ValueError(
                "keep_best is true, but there are no documents to validate on; expected"
                " --validation files, or held_out_sources that the data has, or"
                " keep_best = false"
            )
        processes = processes or Processes()
        # a new model's tokenizer is a file of the run
        self.start = processes.leader_first(self.stage.start)
        inputs["tokenizer"] = sha256(self.start.tokenizer.to_str().encode()).hexdigest()
        objective = self.stage.objective(self.start)
        self.trainer = trainer = Trainer(
            self.start.model,
            objective,
            recipe,
            files.out,
            workers,
            inputs,
            processes=processes,
        )
        notify(f"kernels: {trainer.kernels.kernels.name} ({trainer.kernels.reason})")
        if trainer.step:
            notify(
                f"found the state of step {trainer.step:,}, from which the run resumes"
            )

    def train(self, on_step: OnStep, on_validation: OnValidation) -> Validation | None:
        """Train to the end, and save the checkpoint and its model card.

        Returns the last validation, or None without documents to validate on. Of
        several processes, the leader validates and saves, while the others wait.
        """
        processes = self.trainer.processes
        # a base before its first step, or a killed run's last step
        if self._is_due(self.trainer.step):
            self._validate(
                self._with_weights(self.trainer.averaged_weights()), on_validation
            )
        for report in self.trainer.run():
            on_step(report)
            if self._is_due(report.step):
                self._validate(
                    self._with_weights(self.trainer.averaged_weights()), on_validation
                )
        if not processes.leads:
            processes.wait_for_leader()
            return None
        weights = self.trainer.best.get("weights") or self.trainer.averaged_weights()
        chosen = self.stage.finish(self._with_weights(weights))
        validation = self._validate(chosen, on_validation, final=True)
        settings = replace(self.start.settings, training=self._summary(validation))
        self.stage.save(replace(chosen, settings=settings))
        processes.wait_for_leader()
        return validation

    def _is_due(self, step: int) -> bool:
        if not self.trainer.processes.leads:
            return False
        # the end validates anyway; keep_best compares these weights too
        if step == self.recipe.steps:
            return self.recipe.keep_best
        if step == 0:
            return self.files.base is not None
        return step % self.recipe.validate_every == 0

    def _validate(
        self, checkpoint: Checkpoint, on_validation: OnValidation, final: bool = False
    ) -> Validation | None:
        validation = self.stage.validate(checkpoint, final)
        if validation is not None:
            if self.recipe.keep_best and not final:
                self.trainer.offer(validation.choice)
            append_records(
                self.trainer.log,
                [{"step": self.trainer.step, "validation": validation.measures}],
            )
            on_validation(self.trainer.step, validation)
        return validation

    def _with_weights(self, weights: dict[str, Tensor]) -> Checkpoint:
        model = copy.deepcopy(self.start.model)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(weights[name])
        return replace(self.start, model=model.eval())

    def _summary(self, validation: Validation | None) -> dict[str, Any]:
        model = self.start.model
        trainer = self.trainer
        before = self.start.settings.training
        best = {"best_step": trainer.best["step"]} if trainer.best else {}
        measures: dict[str, dict[str, float]] = {}
        if validation:
            for source, values in validation.measures.items():
                rounded = {name: round(value, 4) for name, value in values.items()}
                measures[source] = rounded
        summary = {
            "stage": self.recipe.stage,
            "steps": trainer.step,
            **best,
            "hours": round(trainer.seconds / 3600, 2),
            "hardware": (
                f"{model.device.type}, {torch.get_num_threads()} threads,"
                f" {platform.machine()}"
            ),
            "kernels": trainer.kernels.kernels.name,
            "started_from": self.files.base or "nothing",
            "questions_by_source": self.stage.drawn.questions_by_source,
            "left_out": len(self.stage.shared),
            "recipe": asdict(self.recipe),
            self.stage.measured: measures,
        }
        if before:
            summary["before"] = before
        return summary


def refuse_folder_of_inputs(files: RunFiles) -> None:
    """Raise ``ValueError`` if the checkpoint would replace files that are read."""
    inputs = [*files.data, *files.validation]
    if files.config is not None:
        inputs.append(files.config)
    if files.base is not None:
        inputs.append(Path(files.base))
    check_results_folder(files.out, RESULTS, inputs)
