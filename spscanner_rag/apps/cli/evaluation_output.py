"""The result of ``spscanner eval``: in the terminal, and in the files of its folder, with the page."""

import sys
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich import table as rich_table
from rich.console import Console

from spscanner_rag.apps.pages.evaluation import Chart, EvaluationPage, Setting, render_evaluation
from spscanner_rag.apps.pages.terminal import line_of, open_console
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.result import (
    Column,
    Result,
    metrics_of,
    paired_tests,
    summary,
    verdicts,
    write_files,
)
from spscanner_rag.lab.evaluation.run import POSITION_CUTOFFS
from spscanner_rag.lab.evaluation.tables import Table, shown
from spscanner_rag.text.escaping import one_line

_SHORT = 8  # characters; a column of such numbers is never wrapped

_WIDE = 200  # columns


def write_result(result: Result, out: Path, facts: Mapping[str, str]) -> None:
    """Write all files of a result; the page shows ``facts`` about the run."""
    write_files(result, out)
    write_whole(out / "results.html", render_evaluation(page_of(result), facts))


def page_of(result: Result) -> EvaluationPage:
    """The tables and charts that the page of a result shows."""
    first = (
        result.find(result.settings[0], "recall", result.cutoffs[-1], "micro") if result.settings else None
    )
    averaged = [*result.recalls, result.ndcg, ("success", result.cutoffs[0]), ("mrr", None), ("map", None)]
    if several := len(result.sources) > 1:
        averages = [
            metrics_of(result, average, f"{average}, {len(result.sources)} sources", averaged)
            for average in ("macro", "micro")
        ]
    else:  # the means are the source's own numbers
        averages = [_of_source(result, source, averaged) for source in result.sources]
    return EvaluationPage(
        settings=[
            Setting(each.retriever, each.unit, each.label, bool(each.variants)) for each in result.settings
        ],
        sources=result.sources,
        differences=result.differences,
        asked=(first["questions"], first["documents"]) if first else None,
        averages=averages,
        charts=_charts(result),
        tables=result.tables,
        by_source=[_of_source(result, source) for source in result.sources] if several else [],
        tests=[paired_tests(result.differences)] if result.differences else [],
    )


def _of_source(result: Result, source: str, columns: list[Column] | None = None) -> Table:
    row = next(row for row in result.rows if row["source"] == source)
    asked = " on ".join(
        f"{number:,} {name}{'' if number == 1 else 's'}"
        for name, number in (("question", row["questions"]), ("document", row["documents"]))
    )
    return metrics_of(result, source, f"{source} {row['split']}: {asked}", columns or ())


def _charts(result: Result) -> list[Chart]:
    budgets, lengths = (
        sorted({row["k"] or 0 for row in result.rows if row["metric"] == metric})
        for metric in ("recall_at_tokens", "recall_by_length")
    )
    places = "tenth of the document; the best 50 sentences, or 5 chunks"
    shown_by = [
        ("Recall at k", "best k units", "recall", result.cutoffs),
        ("Recall at equal tokens", "tokens that may be retrieved", "recall_at_tokens", budgets),
        ("Recall by place of the evidence", places, "recall_by_position", range(1, 11)),
        ("Recall@10 by length of the document", "characters, from", "recall_by_length", lengths),
    ]
    charts = []
    for title, label, metric, ticks in shown_by:
        series = []
        for setting in result.settings:
            by_place = metric == "recall_by_position"
            name = f"{metric}@{POSITION_CUTOFFS.get(setting.unit, (10,))[-1]}" if by_place else metric
            series.append([result.find(setting, name, tick, "macro") for tick in ticks])
        charts.append(Chart(title, label, ticks, series))
    return charts


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
