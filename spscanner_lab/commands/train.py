"""``spscanner train``, its progress display, and ``spscanner encoder``."""

from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_rag.apps.cli.declaring import argument, option
from spscanner_rag.apps.cli.shared_options import DEVICE, THREADS
from spscanner_rag.text.escaping import encodable, unbroken

if TYPE_CHECKING:
    from spscanner_lab.training.loop import StepReport
    from spscanner_lab.training.stages.evidence import Validation

STEPS_PER_LINE = 20  # where there is no terminal


def train(
    out: Path = option(
        ..., "Folder for state, log and checkpoint; a run found there resumes."
    ),
    data: list[Path] | None = option(
        None, "Files to train on: questions in JSONL (.gz allowed).", "FILE..."
    ),
    recipe: Path | None = argument(
        "Recipe; default: nearly the paper's fine-tuning.",
        "[CONFIG.toml]",
        default=None,
    ),
    base: str | None = option(None, "Checkpoint to fine-tune: a folder or a Hub id."),
    config: Path | None = option(
        None, "Shape of a model to train from scratch: mamba-ssm's config.json."
    ),
    validation: list[Path] | None = option(
        None, "Files to validate on, and never to train on.", "FILE..."
    ),
    device: str = DEVICE,
    threads: int | None = THREADS,
    workers: int = option(
        0, "Processes that prepare steps in advance, so a GPU need not wait.", lowest=0
    ),
    progress: bool = option(True, "Show a progress bar."),
) -> None:
    """Train the stage that the recipe names, validate, and write a checkpoint.

    The checkpoint gets a model card. The same command resumes an interrupted run. Under
    torchrun, several processes share each step.
    """
    import os
    from contextlib import AbstractContextManager, nullcontext

    from spscanner_lab.training.processes import joined_processes
    from spscanner_lab.training.recipe import read_recipe
    from spscanner_lab.training.start import RunFiles
    from spscanner_lab.training.training_run import TrainingRun
    from spscanner_rag.scan.devices import choose
    from spscanner_rag.system.folder_lock import folder_lock
    from spscanner_rag.system.threads import use_threads

    if workers:
        # parallel tokenizers do not survive a fork
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    use_threads(threads)
    numbers = read_recipe(recipe)
    files = RunFiles(data or [], validation or [], out, base, config)
    with joined_processes(device) as (processes, device_of_process):
        view = TrainingView(numbers.steps, progress and processes.leads)
        # of several processes, the leader alone writes
        lock: AbstractContextManager[list[str]] = nullcontext([])
        if processes.leads:
            lock = folder_lock(out)
        with lock as leftovers, view.bar:
            if leftovers:
                view.preparing(
                    f"removed {len(leftovers):,} unfinished files of a run that was "
                    "killed"
                )
            run = TrainingRun(
                files,
                numbers,
                choose(device_of_process).device,
                view.preparing,
                workers,
                processes,
            )
            run.train(view.step, view.validated)


def encoder(
    out: Path = option(
        ..., "Folder for the checkpoint, and for the state of an interrupted training."
    ),
    model: str = option(
        "minilm",
        "Encoder: minilm, or a folder or Hub id of a sentence-transformers BERT.",
    ),
    data: list[Path] = option(
        ..., "Questions for training and weighting (.jsonl, .jsonl.gz).", "FILE..."
    ),
    base: str | None = option(
        None, "Checkpoint that gets the encoder; default: the bundled one."
    ),
    steps: int = option(600, "Training steps; 0 keeps the encoder as it is.", lowest=0),
    cross_steps: int = option(
        0, "Training steps of a cross-reader; 0 keeps the encoder's, if any.", lowest=0
    ),
    documents: int = option(100, "Most training documents from each source.", lowest=1),
    questions: int = option(
        8, "Most held-out questions from each source for weighting.", lowest=1
    ),
    seed: int = option(0, "Seed for every random choice."),
    threads: int | None = THREADS,
    progress: bool = option(True, "Show progress."),
) -> None:
    """Train an encoder on questions, and put it into a checkpoint.

    Training leaves out a tenth of each source's documents (those with
    `int(sha1(doc_id), 16) % 10 == 0`), on which the weights of the cosines, added to
    the scanner's logits, are then fitted. The same command resumes.
    """
    from spscanner_lab.evidence.questions import read_documents
    from spscanner_lab.training.encoder_checkpoint import (
        EncoderNumbers,
        put_into_checkpoint,
    )
    from spscanner_rag.baselines.embedding_models import installed
    from spscanner_rag.system.threads import use_threads

    use_threads(threads)
    put_into_checkpoint(
        installed(model),
        base,
        list(read_documents(data)),
        out,
        EncoderNumbers(steps, cross_steps, documents, questions, seed),
        TrainingView(steps, progress).preparing,
    )


class TrainingView:
    """Shows steps, if ``enabled``, and validations of a run.

    A terminal shows a bar within ``view.bar``.
    """

    def __init__(self, steps: int, enabled: bool) -> None:
        from spscanner_rag.apps.pages.terminal import progress_bars

        self._steps = steps
        self._enabled = enabled
        self.bar = progress_bars(None if enabled else False)
        self._console = self.bar.console
        self._task = self.bar.add_task("training", total=steps)
        self._mean_loss: float | None = None

    def step(self, report: "StepReport") -> None:
        """Show a step: moving average of the loss, gradient norm and throughput."""
        before = report.loss if self._mean_loss is None else self._mean_loss
        self._mean_loss = 0.95 * before + 0.05 * report.loss
        line = (
            f"loss {self._mean_loss:.4f}  gradient {report.gradient_norm:.2f}  "
            f"{report.tokens_per_second:,.0f} tokens/s"
        )
        self.bar.update(self._task, completed=report.step, description=line)
        if self._enabled and self.bar.disable and report.step % STEPS_PER_LINE == 0:
            self._print(f"step {report.step:,} of {self._steps:,}  {line}")

    def validated(self, step: int, validation: "Validation") -> None:
        """Show what a validation found."""
        for line in validation.lines:
            self._print(f"step {step:,}  {line}")

    def preparing(self, message: str) -> None:
        """Show a message about work before the first step."""
        if self._enabled:
            self._print(message)

    def _print(self, line: str) -> None:
        """Print a line, which may contain names of sources and files."""
        self._console.print(
            encodable(unbroken(line), self._console.encoding), soft_wrap=True
        )
