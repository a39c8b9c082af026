"""Progress, summary and exit code of commands that ask a language model."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_lab.llm.budget import Budget

NOTHING_USABLE = 1
"""Exit code of a run without an example."""

ENDED_EARLY = 3
"""Exit code of a run that ended before all requests were made."""


@contextmanager
def run_progress(
    visible: bool | None, kind_of_items: str
) -> "Iterator[Callable[[int, int, Budget], None]]":
    """Show a bar of the items done, with examples, requests and cost."""
    from rich.progress import TextColumn

    from spscanner_rag.apps.pages.terminal import progress_bars

    column = TextColumn("{task.fields[outcome]}", markup=False)
    with progress_bars(visible, column) as bars:
        bar = bars.add_task(kind_of_items, total=None, outcome="")

        def show(done: int, examples: int, budget: "Budget") -> None:
            outcome = (
                f"{examples:,} examples, {budget.requests:,} requests, cost"
                f" {budget.cost:,.2f}"
            )
            bars.update(bar, completed=done, outcome=outcome)

        yield show


def spending(summary: Mapping[str, Any]) -> str:
    """Return what a run spent, in words."""
    return (
        f"{summary['requests']:,} requests, {summary['prompt_tokens']:,} prompt"
        f" tokens, {summary['reply_tokens']:,} reply tokens, cost"
        f" {summary['cost']:,.4f}"
    )


def reasons(summary: Mapping[str, Any], name: str) -> list[str]:
    """Return a line of reasons and how often each came, or no line."""
    counts = []
    for reason, count in summary[name].items():
        counts.append(f"{one_line(reason)} ({count:,})")
    if not counts:
        return []
    return [f"{name.replace('_', ' ')}: {', '.join(counts)}"]


def files_with_lines(
    summary: Mapping[str, Any], out: Path, kind_of_lines: str
) -> list[str]:
    """Return a line for each file that has some."""
    lines = []
    for name, count in summary["files"].items():
        if count:
            path = one_line(str(out / name))
            lines.append(f"{count:,} {kind_of_lines} in {path}")
    return lines


def end_run(lines: list[str], summary: Mapping[str, Any]) -> None:
    """Write the lines of a summary, and exit unless all requests were made."""
    stopped = summary["stopped"]
    if stopped:
        lines = [*lines, f"ended early: {one_line(stopped)}; the same command resumes"]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not summary["examples"]:
        raise typer.Exit(NOTHING_USABLE)
    if stopped:
        raise typer.Exit(ENDED_EARLY)
