"""Tables for the terminal, Markdown and HTML, and their cells."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

from spscanner_rag.text.markdown_and_csv import markdown_text


class Share(TypedDict):
    """A share from 0 to 1, with its interval if it has one."""

    value: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title and an explanation."""

    title: str
    about: str  # one paragraph
    head: Sequence[str]
    body: Sequence[Sequence[str | Share]]  # text may come from the data
    best: Collection[tuple[int, int]] = ()  # row and column of the cells to mark


def shown(cell: str | Share, interval: bool = True) -> str:
    """A cell as text: a share in percent, with its interval if it has one and that is asked for."""
    if isinstance(cell, str):
        return cell
    percent = f"{100 * cell['value']:.1f}"
    if not interval or cell["ci_low"] is None or cell["ci_high"] is None:
        return percent
    return f"{percent} ({100 * cell['ci_low']:.1f} to {100 * cell['ci_high']:.1f})"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "?" if share is None else f"{100 * share:+.1f}"


def to_markdown(table: Table) -> str:
    """A table in Markdown, with its title and explanation."""
    title = f"{markdown_text(table.title)}. " if table.title else ""
    lines = [
        list(map(markdown_text, table.head)),
        ["---"] * len(table.head),
        *([markdown_text(shown(cell)) for cell in cells] for cells in table.body),
    ]
    return f"{title}{markdown_text(table.about)}\n\n" + "".join(
        f"| {' | '.join(cells)} |\n" for cells in lines
    )
