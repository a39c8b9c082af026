"""The result of an evaluation in the terminal."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich import box
from rich import table as rich_table
from rich.console import Console

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.result_tables import table_of
from spscanner_lab.evaluation.statistics import Estimate
from spscanner_lab.evaluation.tables import Table, shown
from spscanner_lab.evaluation.verdicts import verdicts
from spscanner_rag.apps.pages.terminal import line_of, open_console
from spscanner_rag.text.escaping import one_line

_SHORT = 8  # characters; columns of numbers up to this length are never wrapped
_FEW = 4  # most numbers on a line that leave room for their intervals
_WIDE = 200  # columns, where the output has no width


def show_result(result: EvaluationResult, out: Path) -> None:
    """Print the tables, then the folder with the files."""
    console = open_console(sys.stdout)
    if not console.is_terminal:
        # a file or a pipe has no width, so cells are not folded
        console.width = _WIDE
    if result.rows:
        title = "Recall, nDCG, MRR and MAP, percent"
        rankings = table_of(result, title, "", result.ranking_columns)
        console.print(_grid(console, rankings))
    for verdict in verdicts(result):
        console.print(line_of(console, verdict, "bold"))
    for table in result.tables:
        console.print(_grid(console, table))
        console.print(line_of(console, table.about))
    console.print(line_of(console, f"written to {out}"))


def _grid(console: Console, table: Table) -> rich_table.Table:
    """A table for the terminal.

    Lines separate groups with equal first cells, if a group has several rows.
    """
    title = line_of(console, table.title)
    grid = rich_table.Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    has_few_numbers = max(map(_numbers, table.body), default=0) <= _FEW
    body: list[list[str]] = []
    for cells in table.body:
        body.append([])
        for cell in cells:
            body[-1].append(one_line(shown(cell, has_few_numbers)))
    for number, name in enumerate(table.head):
        is_number = number > 1
        longest = max((len(cells[number]) for cells in body), default=0)
        grid.add_column(
            line_of(console, name),
            justify="right" if is_number else "left",
            no_wrap=is_number and longest <= _SHORT,
        )
    firsts = [cells[0] for cells in body]
    has_groups = len(set(firsts)) < len(firsts)
    for number, cells in enumerate(body):
        if number and has_groups and firsts[number] != firsts[number - 1]:
            grid.add_section()
        grid.add_row(*map(partial(line_of, console), cells))
    return grid


def _numbers(cells: Sequence[str | Estimate]) -> int:
    """How many cells are shares."""
    numbers = 0
    for cell in cells:
        numbers += not isinstance(cell, str)
    return numbers
