"""The result of a run: its numbers, and the files and the tables in the terminal that show them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spscanner_rag.evaluation.report.markdown import to_markdown
from spscanner_rag.evaluation.report.page import render_page
from spscanner_rag.evaluation.report.sections import Section
from spscanner_rag.evaluation.report.table import Row, index_of, sources_of, to_csv
from spscanner_rag.evaluation.run import Setting
from spscanner_rag.evidence.metrics import CUTOFFS
from spscanner_rag.files.whole_file import write_whole
from spscanner_rag.views.escaping import one_line

_SHORT = 8  # characters: numbers that are not broken, however narrow the terminal


@dataclass(frozen=True, slots=True)
class Result:
    """What a run has found.

    Attributes
    ----------
    rows, differences
        From `rows_of` and `differences_of`.
    settings
        In the order of the tables.
    more_rows
        Beside those of the main tables.
    sections
        Further tables.
    files
        Further JSON files, by name.
    """

    rows: Sequence[Row]
    differences: Sequence[Mapping[str, object]]
    settings: Sequence[Setting]
    more_rows: Sequence[Row] = ()
    sections: Sequence[Section] = ()
    files: Mapping[str, object] = field(default_factory=dict)

    def write(self, out: Path, facts: Mapping[str, str]) -> None:
        """Write all files; ``facts`` says on the page what is to be said about the run."""
        rows = [*self.rows, *self.more_rows]
        content = {"results.json": rows, "differences.json": self.differences, **self.files}
        for name, value in content.items():
            write_whole(out / name, json.dumps(value, indent=1) + "\n")
        shown = (self.rows, self.differences, self.settings)
        write_whole(out / "results.csv", to_csv(rows))
        write_whole(out / "results.md", to_markdown(*shown, self.sections))
        write_whole(out / "results.html", render_page(*shown, facts, self.sections))

    def show(self, out: Path) -> None:
        """Tables on standard output, and where the files are."""
        console = Console()
        console.print(_table(self._recalls()))
        for section in self.sections:
            console.print(_table(section))
            console.print(Text(one_line(section.about)))
        console.print(Text(f"written to {one_line(str(out))}"))

    def _recalls(self) -> Section:
        columns = [*(("recall", k) for k in CUTOFFS), ("ndcg", 10), ("mrr", None)]
        index = index_of(self.rows)
        body = []
        for source in [*sources_of(self.rows), "macro", "micro"]:
            for setting in self.settings:
                found = [index.get((*setting, *column, source)) for column in columns]
                if any(found):
                    cells = ["-" if row is None else f"{100 * row['value']:.1f}" for row in found]
                    body.append([source, setting.label, *cells])
        head = ["source", "retriever", *(f"@{k}" for k in CUTOFFS), "nDCG", "MRR"]
        return Section("recall at k (@k), nDCG@10 and MRR, percent", "", head, body)


def _table(section: Section) -> Table:
    """A section as rich shows it; a line parts what the first column tells apart, unless that is all lines."""
    table = Table(title=section.title, box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(section.head):
        short = all(len(cells[number]) <= _SHORT for cells in section.body)
        table.add_column(name, justify="right" if number > 1 else "left", no_wrap=number > 1 and short)
    firsts = [cells[0] for cells in section.body]
    for number, cells in enumerate(section.body):
        if number and firsts[number] != firsts[number - 1] and len(set(firsts)) < len(firsts):
            table.add_section()
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table
