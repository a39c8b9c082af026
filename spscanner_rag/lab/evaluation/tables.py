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


def interval(share: Share) -> str:
    """The interval of a share in percent; empty for none."""
    if share["ci_low"] is None or share["ci_high"] is None:
        return ""
    return f"{100 * share['ci_low']:.1f} to {100 * share['ci_high']:.1f}"


def percent(share: Share | None) -> str:
    """A share in percent; a dash for none."""
    return "-" if share is None else f"{100 * share['value']:.1f}"


def shown(cell: str | Share | None) -> str:
    """A cell as text: a share in percent, with its interval if it has one."""
    if isinstance(cell, str):
        return cell
    return f"{percent(cell)} ({interval(cell)})" if cell and interval(cell) else percent(cell)


def number(share: Share | None, digits: int = 0) -> str:
    """A value that is no share, such as seconds; a dash for none."""
    return "-" if share is None else f"{share['value']:,.{digits}f}"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "?" if share is None else f"{100 * share:+.1f}"


def to_markdown(table: Table) -> str:
    """A table with its title and explanation, for documents such as model cards."""
    title = f"{markdown_text(table.title)}. " if table.title else ""
    lines = [
        list(map(markdown_text, table.head)),
        ["---"] * len(table.head),
        *([markdown_text(shown(cell)) for cell in cells] for cells in table.body),
    ]
    return f"{title}{markdown_text(table.about)}\n\n" + "".join(
        f"| {' | '.join(cells)} |\n" for cells in lines
    )
