"""The result of an evaluation as Markdown tables, for documents such as model cards."""

from collections.abc import Sequence

from spscanner_rag.lab.evaluation.report.result import Result, macro_means, paired_tests, recalls
from spscanner_rag.lab.evaluation.report.tables import Table, shown
from spscanner_rag.text.escaping import markdown_text


def to_markdown(result: Result) -> str:
    """Recall by source, macro means with intervals, paired tests, and the further tables."""
    tables = [recalls(result), macro_means(result)]
    if result.differences:
        tables.append(paired_tests(result.differences))
    return "\n".join(map(_table, [*tables, *result.tables]))


def _table(table: Table) -> str:
    title = f"{markdown_text(table.title)}. " if table.title else ""
    lines = [
        list(map(markdown_text, table.head)),
        ["---"] * len(table.head),
        *([markdown_text(shown(cell)) for cell in cells] for cells in table.body),
    ]
    return f"{title}{markdown_text(table.about)}\n\n" + "".join(map(_line, lines))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"
