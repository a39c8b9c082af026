"""The result of ``spscanner eval``: in the terminal, in files, and as one HTML page without a script."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich import table as rich_table
from rich.console import Console

from spscanner_rag.apps.pages.html_page import listed, render, short_labels
from spscanner_rag.apps.pages.terminal import line_of, open_console
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.result import (
    CHANCE,
    Column,
    Result,
    Table,
    paired_tests,
    shown,
    table_of,
    verdicts,
    write_files,
)
from spscanner_rag.lab.evaluation.run import POSITION_CUTOFFS
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import AVERAGES, Difference, Row
from spscanner_rag.text.escaping import one_line

_SHORT = 8  # characters; a column of such numbers is never wrapped
_FEW = 4  # shares that have room for their intervals on a line
_WIDE = 200  # columns of a terminal that has no width

FEW_DOCUMENTS, FEW_QUESTIONS = 5, 30  # fewer are called few
COLOURS = 8  # classes c1 to c8 of page.css
METRICS = {
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "recall_at_tokens@1000": "recall in 1,000 tokens",
    "recall_at_tokens@2000": "recall in 2,000 tokens",
    "document_mrr": "MRR of the document",
}

SHAPES = {
    "sentence": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "chunk": "M-4-4h8v8h-8z",
    "passage": "M0-5.6 5.6 0 0 5.6-5.6 0z",
    "document": "M0-4.8 4.8 4-4.8 4z",
}
"""Outlines of the markers: a circle, a square, a diamond and a triangle."""


class Look(NamedTuple):
    """The look of a setting everywhere on the page: one colour for a retriever, one shape for a unit."""

    label: str
    name: str  # the whole label
    colour: str  # class
    shape: str
    hollow: bool  # a variant of a setting


@dataclass(frozen=True)
class Chart:
    """Shares of each setting of the page over evenly spaced ticks; None where there is none."""

    title: str
    x_label: str
    ticks: Sequence[int]
    series: Sequence[Sequence[Row | None]]

    width, height, left, right, top, bottom = 560, 300, 54, 14, 14, 44

    @property
    def most(self) -> float:
        """The share at the top: the next fifth above all values."""
        shares = [float(share["value"]) for own in self.series for share in own if share]
        return 0.2 * math.ceil(max([0.05, *shares]) / 0.2 - 1e-9)

    @property
    def lines(self) -> list[float]:
        """The shares that have a line of the grid."""
        return [number * self.most / 4 for number in range(5)]

    def x(self, tick: int, series: int | None = None) -> float:
        """The place of a tick, and of one of the series beside it."""
        room = (self.width - self.left - self.right) / max(1, len(self.ticks))
        apart = min(8.0, 0.8 * room / max(1, len(self.series)))
        shift = 0.0 if series is None else apart * (series - (len(self.series) - 1) / 2)
        return self.left + room * (tick + 0.5) + shift

    def y(self, share: float) -> float:
        """The height of a share, counted from the top."""
        inside = min(max(share, 0.0), self.most)
        return self.top + (self.height - self.top - self.bottom) * (1 - inside / self.most)


def render_evaluation(result: Result, facts: Mapping[str, str]) -> str:
    """The page, as a string to be written in UTF-8; it shows ``facts`` such as command, machine and date."""
    looks, tests = looks_of(result.settings), result.differences
    asked = (
        result.find(result.settings[0], "recall", result.cutoffs[-1], "micro") if result.settings else None
    )
    first_metrics = [test["metric"] for test in first_tests(tests).values()]
    bounds = [
        bound for test in tests for bound in (test["difference"], test["ci_low"], test["ci_high"]) if bound
    ]
    several = len(result.sources) > 1
    by_source = [_of_source(result, source, _asked(result, source)) for source in result.sources]
    of_all = [_of_source(result, name, f"{name}, {len(result.sources)} sources") for name in AVERAGES]
    return render(
        "pages/templates/evaluation",
        "Retrieval of evidence",
        result=result,
        several=several,
        asked=asked,
        few=asked and (asked["questions"] < FEW_QUESTIONS or asked["documents"] < FEW_DOCUMENTS),
        averages=of_all if several else by_source,  # the means over one source are its own numbers
        charts=charts_of(result),
        tests=[paired_tests(tests)] if tests else [],
        by_source=by_source if several else [],
        facts=facts,
        looks=looks,
        by_name={look.name: look for look in looks},
        sentence=first_sentence(tests, {look.name: look.label for look in looks}),
        measured_by=list(dict.fromkeys(METRICS.get(name, name) for name in first_metrics)),
        several_units=len({setting.unit for setting in result.settings}) > 1,
        metrics=METRICS,
        chance=CHANCE,
        reach=1.05 * max([0.05, *map(abs, bounds)]),  # what is at the edge of the picture of differences
        listed=listed,
    )


def _of_source(result: Result, source: str, title: str) -> Table:
    """As many columns as a page is wide."""
    most = result.cutoffs[-1]
    costs: dict[str, Column] = {f"tokens@{most}": ("tokens", most), "seconds": ("seconds", None)}
    return table_of(result, title, "", result.ranked | costs, [source])


def _asked(result: Result, source: str) -> str:
    row = next(row for row in result.rows if row["source"] == source)
    asked = " on ".join(
        f"{number:,} {name}{'' if number == 1 else 's'}"
        for name, number in (("question", row["questions"]), ("document", row["documents"]))
    )
    return f"{source} {row['split']}: {asked}"


def charts_of(result: Result) -> list[Chart]:
    """The pictures of recall: each setting over cut-offs, tokens, places and lengths."""
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


def looks_of(settings: Sequence[Setting]) -> list[Look]:
    """The look of each setting: one colour for a retriever, whatever its unit and variants."""
    retrievers = list(dict.fromkeys(setting.retriever for setting in settings))
    labels = short_labels([setting.label for setting in settings])
    return [
        Look(
            label,
            setting.label,
            f"c{retrievers.index(setting.retriever) % COLOURS + 1}",
            SHAPES.get(setting.unit, SHAPES["document"]),
            bool(setting.variants),
        )
        for label, setting in zip(labels, settings, strict=True)
    ]


def first_sentence(differences: Sequence[Difference], labels: Mapping[str, str]) -> str:
    """Say who is better, and whether significantly, by the first metric of each pair; ``labels`` are short."""
    if not differences:
        return "Nothing was compared: there is one retriever."
    first = differences[0]["first"]
    groups: dict[str, list[str]] = {"better": [], "worse": [], "even": []}
    for second, test in first_tests(differences).items():
        clear = "better" if test["difference"] > 0 else "worse"
        kind = clear if test["p_value"] < CHANCE else "even"
        groups[kind].append(_in_prose(labels.get(second, second)))
    name = _in_prose(labels.get(first, first))
    sentences = [
        f"{name} is {kind} than {listed(groups[kind])}, by more than chance."
        for kind in ("better", "worse")
        if groups[kind]
    ]
    if groups["even"]:
        opening = "Between" if sentences else "No clear winner: between"
        sentences.append(f"{opening} {name} and {listed(groups['even'])}, the difference may be chance.")
    return " ".join(sentences)


def first_tests(differences: Sequence[Difference]) -> dict[str, Difference]:
    """The first test of each retriever against the first one."""
    found: dict[str, Difference] = {}
    for test in differences:
        found.setdefault(test["second"], test)
    return found


def _in_prose(label: str) -> str:
    name, comma, variants = label.partition(", ")
    return f"{name} ({variants})" if comma else name  # one name in a list


def write_result(result: Result, out: Path, facts: Mapping[str, str]) -> None:
    """Write all files of a result; the page shows ``facts`` about the run."""
    write_files(result, out)
    write_whole(out / "results.html", render_evaluation(result, facts))


def show_result(result: Result, out: Path) -> None:
    """Print the tables, and the folder of the files."""
    console = open_console(sys.stdout)
    if not console.is_terminal:  # a file or a pipe has no width: fold no cell
        console.width = _WIDE
    ranked = table_of(result, "Recall, nDCG, MRR and MAP, percent", "", result.ranked)
    console.print(_table(console, ranked))
    for verdict in verdicts(result):
        console.print(line_of(console, verdict, "bold"))
    for table in result.tables:
        console.print(_table(console, table))
        console.print(line_of(console, table.about))
    console.print(line_of(console, f"written to {out}"))


def _table(console: Console, table: Table) -> rich_table.Table:
    """Lines separate groups with the same first cell, unless every group is a single row."""
    grid = rich_table.Table(title=line_of(console, table.title), box=box.SIMPLE_HEAD, pad_edge=False)
    few = all(sum(not isinstance(cell, str) for cell in cells) <= _FEW for cells in table.body)
    body = [[one_line(shown(cell, few)) for cell in cells] for cells in table.body]
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
