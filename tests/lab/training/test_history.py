"""What a checkpoint was trained on before is not what the next run begins with."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.start import RunFiles
from spscanner_rag.lab.training.training_run import TrainingRun, steps_before
from tests.lab.training.conftest import SHAPE

RECIPE = Recipe(sequences_per_step=8, seed=3)


def run_record(steps: object = 100, stage: str = "evidence", **recipe: object) -> dict[str, Any]:
    return {"stage": stage, "steps": steps, "recipe": {"sequences_per_step": 8, "seed": 3} | recipe}


@pytest.mark.parametrize(
    ("record", "steps"),
    [
        ({}, 0),
        (None, 0),
        (run_record(), 100),
        (run_record(sequences_per_step=12), 150),
        (run_record(5, sequences_per_step=7), 5),  # 35 examples in steps of 8
        (run_record(seed=4), 0),
        (run_record(stage="language-model"), 0),
        (run_record() | {"before": run_record(20) | {"before": run_record(seed=0)}}, 120),
        ({"steps": 10, "recipe": {"seed": 3}}, 10),  # records of the first version name no stage
        (run_record("many") | {"before": run_record(-5) | {"before": run_record(True)}}, 0),
        (run_record() | {"recipe": "lost", "before": [1]}, 0),
    ],
)
def test_steps_before(record: object, steps: int) -> None:
    assert steps_before(record, RECIPE) == steps


def test_a_run_from_a_trained_base_draws_other_examples(
    tmp_path: Path, corpus_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = tmp_path / "shape.json"
    shape.write_text(json.dumps(SHAPE), encoding="utf-8")
    recipe = replace(
        RECIPE, steps=2, sequences_per_step=4, sequence_tokens=[256], tokens_per_pass=1024, vocab_size=300
    )
    runs = {}
    for name, base in (("base", None), ("further", str(tmp_path / "base"))):
        config = None if base else shape
        files = RunFiles([corpus_file], [], tmp_path / name, base, config, tmp_path / "teacher")
        run = TrainingRun(files, recipe, torch.device("cpu"))
        drawn, example = [], run.trainer._objective.example
        monkeypatch.setattr(
            run.trainer._objective,
            "example",
            lambda number, length, drawn=drawn, example=example: (
                drawn.append(number) or example(number, length)
            ),
        )
        run.train(lambda report: None, lambda step, validation: None)
        runs[name] = drawn
    assert runs == {"base": list(range(8)), "further": list(range(8, 16))}
    record = load_checkpoint(tmp_path / "further").settings.training
    assert record["before"] == load_checkpoint(tmp_path / "base").settings.training
    assert steps_before(record, recipe) == 4
