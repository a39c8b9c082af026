"""``spscanner train``: trains a language model, a scanner or a reranker, from nothing or from a base."""

from pathlib import Path
from typing import Annotated

import typer

from spscanner_rag.apps.cli.arguments import Device, Threads


def train(
    out: Annotated[
        Path, typer.Option(help="Folder for state, log and checkpoint; a run found there resumes.")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="Files to train on. Questions in JSONL (.gz allowed); for the stage "
            '"language-model" also plain text (.txt, .txt.gz, .txt.xz).',
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...", help="Plain text to make pseudo-questions from, with or without --data."
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG.toml]", help="Recipe; default: nearly the paper's fine-tuning."),
    ] = None,
    base: Annotated[str | None, typer.Option(help="Checkpoint to fine-tune: a folder or a Hub id.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Shape of a model to train from nothing: mamba-ssm's config.json.")
    ] = None,
    validation: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Files to validate on, never trained on."),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Teacher instead of the recipe's: minilm, a name or folder for sentence-transformers, or "
            "cross-encoder:NAME."
        ),
    ] = None,
    teacher_cache: Annotated[
        Path | None, typer.Option(help="Folder of teacher scores; default OUT/teacher.")
    ] = None,
    word_vectors: Annotated[
        Path | None,
        typer.Option(help="Table of `spscanner word-vectors`, for lexical_soft and embedding_start."),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    workers: Annotated[
        int, typer.Option(help="Processes that draw coming steps, so that a GPU does not wait for them.")
    ] = 0,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Train the stage that the recipe names, then validate and write checkpoint and model card.

    The same command resumes an interrupted run. On several devices: torchrun --nproc-per-node N --max-restarts R
    -m spscanner_rag.apps.cli train ...; they share the sequences of each step, and go on together after one died.
    """
    import os
    from dataclasses import replace

    from spscanner_rag.checkpoint.whole_file import remove_leftovers
    from spscanner_rag.files.folder_lock import folder_lock
    from spscanner_rag.lab.training.devices import joined_workers
    from spscanner_rag.lab.training.recipe_file import read_recipe
    from spscanner_rag.lab.training.run import SNAPSHOTS, TrainingRun
    from spscanner_rag.lab.training.start import RunFiles
    from spscanner_rag.lab.training.view import TrainingView
    from spscanner_rag.scan.devices import choose
    from spscanner_rag.scan.threads import use_threads

    if workers:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # parallel tokenizers do not survive a fork
    use_threads(threads)
    numbers = read_recipe(recipe)
    if teacher is not None:
        numbers = replace(numbers, teacher=teacher)
    files = RunFiles(
        data or [],
        validation or [],
        out,
        base,
        config,
        teacher_cache or out / "teacher",
        text or [],
        word_vectors,
    )
    with joined_workers(device) as (together, own_device):
        if not together.leads:
            run = TrainingRun(files, numbers, choose(own_device).device, workers=workers, together=together)
            run.train(lambda report: None, lambda step, validation: None)
            return
        view = TrainingView(numbers.steps, progress)
        with folder_lock(out) as leftovers, view.bar:
            leftovers += remove_leftovers(out / SNAPSHOTS, 0) + remove_leftovers(files.teacher_cache)
            if leftovers:
                view.preparing(f"removed {len(leftovers):,} unfinished files of a run that was killed")
            run = TrainingRun(files, numbers, choose(own_device).device, view.preparing, workers, together)
            run.train(view.step, view.validated)
