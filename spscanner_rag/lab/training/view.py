"""What a training run shows on standard error: a progress bar in a terminal, else a line now and then."""

import sys

from rich.text import Text

from spscanner_rag.apps.pages.terminal import open_console, progress_bars
from spscanner_rag.lab.training.loop import StepReport
from spscanner_rag.lab.training.stages.stage import Validation
from spscanner_rag.text.escaping import encodable, unbroken

STEPS_PER_LINE = 20  # without a terminal


class TrainingView:
    """Shows steps and validations on standard error; within ``with view.bar:`` a terminal has a bar.

    ``steps`` is the number of steps of the whole run; only validations are shown unless ``enabled``.
    """

    def __init__(self, steps: int, enabled: bool) -> None:
        self._console = open_console(sys.stderr)
        self._steps, self._enabled = steps, enabled
        self.bar = progress_bars(self._console, disable=not (enabled and self._console.is_terminal))
        self._task = self.bar.add_task("training", total=steps)
        self._mean_loss: float | None = None

    def step(self, report: StepReport) -> None:
        """Show a step: the mean loss of the last steps, gradient norm and throughput."""
        before = report.loss if self._mean_loss is None else self._mean_loss
        self._mean_loss = 0.95 * before + 0.05 * report.loss
        line = (
            f"loss {self._mean_loss:.4f}  gradient {report.gradient_norm:.2f}  "
            f"{report.tokens_per_second:,.0f} tokens/s"
        )
        self.bar.update(self._task, completed=report.step, description=line)
        if self._enabled and self.bar.disable and report.step % STEPS_PER_LINE == 0:
            self._print(f"step {report.step:,} of {self._steps:,}  {line}")

    def validated(self, step: int, validation: Validation) -> None:
        """Show what a validation found."""
        for line in validation.lines:
            self._print(f"step {step:,}  {line}")

    def preparing(self, message: str) -> None:
        """Show a message about work before the first step."""
        if self._enabled:
            self._print(message)

    def _print(self, line: str) -> None:
        """Print a line, which may hold names of sources and files."""
        shown = encodable(unbroken(line), self._console.encoding)
        self._console.print(Text(shown), soft_wrap=True)
