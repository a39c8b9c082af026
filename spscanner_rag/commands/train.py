"""``spscanner train``: fine-tune a scanner, or train a small one from nothing."""

from pathlib import Path
from typing import Annotated

import typer


def train(
    data: Annotated[list[Path], typer.Option(help="JSONL file to train on (.gz allowed); repeat for more.")],
    out: Annotated[
        Path, typer.Option(help="Folder for state, log and checkpoint; a run found there is resumed.")
    ],
    recipe: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG.toml]", help="Recipe; default: the paper's fine-tuning.")
    ] = None,
    base: Annotated[str | None, typer.Option(help="Checkpoint to fine-tune: a folder or a Hub id.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Shape of a model to train from nothing: mamba-ssm's config.json.")
    ] = None,
    validation: Annotated[
        list[Path] | None, typer.Option(help="JSONL file to validate on, never trained on; repeat for more.")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="Teacher instead of the recipe's: a name or folder for sentence-transformers."),
    ] = None,
    teacher_cache: Annotated[
        Path | None, typer.Option(help="Folder of teacher embeddings; default OUT/teacher.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Train on questions with known evidence, then validate and write checkpoint and model card."""
    from dataclasses import replace

    from spscanner_rag.devices import choose
    from spscanner_rag.training.recipe import read_recipe
    from spscanner_rag.training.run import RunFiles, TrainingRun
    from spscanner_rag.training.view import TrainingView

    numbers = read_recipe(recipe)
    if teacher is not None:
        numbers = replace(numbers, teacher=teacher)
    files = RunFiles(data, validation or [], out, base, config, teacher_cache or out / "teacher")
    for path in (*data, *files.validation):
        if not path.is_file():
            raise ValueError(f"{path}: no such file; expected questions in JSONL, as the README describes")
    run = TrainingRun(files, numbers, choose(device).device)
    with TrainingView(numbers.steps, progress) as view:
        run.train(view.step, view.validated)
