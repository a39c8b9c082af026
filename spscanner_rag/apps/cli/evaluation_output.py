"""The result of ``spscanner eval``: in the terminal, and in the files of its folder, with the page."""

import sys
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich import table as rich_table
from rich.console import Console

from spscanner_rag.apps.cli.evaluation_page import render_evaluation
from spscanner_rag.apps.pages.terminal import line_of, open_console
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.result import Result, summary, verdicts, write_files
from spscanner_rag.lab.evaluation.tables import Table, shown
from spscanner_rag.text.escaping import one_line

_SHORT = 8  # characters; a column of such numbers is never wrapped

_WIDE = 200  # columns


def write_result(result: Result, out: Path, facts: Mapping[str, str]) -> None:
    """Write all files of a result; the page shows ``facts`` about the run."""
    write_files(result, out)
    write_whole(out / "results.html", render_evaluation(result, facts))


def show_result(result: Result, out: Path) -> None:
    """Print the tables, and the folder of the files."""
    console = open_console(sys.stdout)
    if not console.is_terminal:  # a file or a pipe has no width: fold no cell
        console.width = _WIDE
    console.print(_table(console, summary(result)))
    for verdict in verdicts(result):
        console.print(line_of(console, verdict, "bold"))
    for table in result.tables:
        console.print(_table(console, table))
        console.print(line_of(console, table.about))
    console.print(line_of(console, f"written to {out}"))


def _table(console: Console, table: Table) -> rich_table.Table:
    """Lines separate groups with the same first cell, unless every group is a single row."""
    grid = rich_table.Table(title=line_of(console, table.title), box=box.SIMPLE_HEAD, pad_edge=False)
    body = [[one_line(shown(cell)) for cell in cells] for cells in table.body]
    for number, name in enumerate(table.head):
        short = all(len(cells[number]) <= _SHORT for cells in body)
        grid.add_column(
            line_of(console, name), justify="right" if number > 1 else "left", no_wrap=number > 1 and short
        )
    firsts = [cells[0] for cells in body]
    for number, cells in enumerate(body):
        if number and firsts[number] != firsts[number - 1] and len(set(firsts)) < len(firsts):
            grid.add_section()
        grid.add_row(*(line_of(console, cell) for cell in cells))
    return grid
