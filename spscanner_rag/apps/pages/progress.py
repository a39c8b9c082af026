"""Progress bars on a terminal, the same for every command."""

from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


def open_console(stream: TextIO) -> Console:
    """A console on ``stream`` that prints every string literally."""
    return Console(file=stream, markup=False, highlight=False, emoji=False)


def progress_bars(console: Console, *further: ProgressColumn, **options: Any) -> Progress:  # noqa: ANN401 - of Progress
    """Bars with a description, the number done, and ``further`` columns (default: the time that remains).

    The ``options`` are those of `rich.progress.Progress`.
    """
    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), *(further or (TimeRemainingColumn(),)))
    return Progress(*columns, console=console, **options)
