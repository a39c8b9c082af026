"""The files of a result: JSON, Markdown and the page."""

import json
from collections.abc import Mapping
from pathlib import Path

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.result_tables import evidence_table, paired_tests
from spscanner_lab.evaluation.tables import Table, shown
from spscanner_lab.views.evaluation_page import render_evaluation
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.escaping import markdown_text


def write_result(result: EvaluationResult, out: Path, facts: Mapping[str, str]) -> None:
    """Write all files of a result.

    The page shows ``facts`` about the run.
    """
    write_files(result, out)
    write_whole(out / "results.html", render_evaluation(result, facts))


def write_files(result: EvaluationResult, out: Path) -> None:
    """Write all files of a result except its HTML page."""
    content_by_name = {
        "results.json": result.rows,
        "differences.json": result.differences,
        **result.files,
    }
    for name, content in content_by_name.items():
        write_whole(out / name, json.dumps(content, indent=1) + "\n")
    tables = []
    if result.rows:
        tables.append(evidence_table(result))
    if result.differences:
        tables.append(paired_tests(result.differences))
    tables += result.tables
    write_whole(out / "results.md", "\n".join(map(to_markdown, tables)))


def to_markdown(table: Table) -> str:
    r"""A table in Markdown, with its title and explanation.

    Examples
    --------
    >>> from spscanner_lab.evaluation.tables import Table
    >>> from spscanner_lab.views.evaluation_files import to_markdown
    >>> print(to_markdown(Table("Speed", "By day.", ["name"], [["a|b"]])))
    Speed. By day.
    <BLANKLINE>
    | name |
    | --- |
    | a\|b |
    <BLANKLINE>
    """
    title = ""
    if table.title:
        title = f"{markdown_text(table.title)}. "
    lines = [_line(list(map(markdown_text, table.head)))]
    lines.append(_line(["---"] * len(table.head)))
    for cells in table.body:
        texts = map(shown, cells)
        lines.append(_line(list(map(markdown_text, texts))))
    return f"{title}{markdown_text(table.about)}\n\n{''.join(lines)}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
