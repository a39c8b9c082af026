"""Tables beside the main ones of a result, told once and shown in the terminal, in Markdown and on the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict


class Share(TypedDict):
    """A share, 0 to 1, with its interval if it has one; the rows of results are such, too."""

    value: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its title and what is to be known about it.

    Attributes
    ----------
    title
    about
        One paragraph.
    head
        Names of the columns.
    body
        Lines of cells, as many as there are columns. They are text, and may come from the data.
    """

    title: str
    about: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]


def percent(share: Share | None) -> str:
    """A share in percent, with its interval if it has one; a dash for none."""
    if share is None:
        return "-"
    if share["ci_low"] is None or share["ci_high"] is None:
        return f"{100 * share['value']:.1f}"
    return f"{100 * share['value']:.1f} ({100 * share['ci_low']:.1f} to {100 * share['ci_high']:.1f})"
