"""Tables of results, and numbers as text."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spscanner_lab.evaluation.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title and an explanation, which is one paragraph.

    Text in the cells may come from the data. ``best`` has row and column of the cells
    to mark.
    """

    title: str
    about: str
    head: Sequence[str]
    body: Sequence[Sequence[str | Estimate]]
    best: Collection[tuple[int, int]] = ()


def shown(cell: str | Estimate, interval: bool = True) -> str:
    """A cell as text: a share in percent.

    Its interval follows, if it has one and ``interval`` is true.

    Examples
    --------
    >>> from spscanner_lab.evaluation.tables import shown
    >>> share = {"value": 0.5, "ci_low": 0.4, "ci_high": 0.625}
    >>> shown(share | {"questions": 9, "documents": 3})
    '50.0 (40.0 to 62.5)'
    """
    if isinstance(cell, str):
        return cell
    percent = f"{100 * cell['value']:.1f}"
    if not interval or cell["ci_low"] is None or cell["ci_high"] is None:
        return percent
    return f"{percent} ({100 * cell['ci_low']:.1f} to {100 * cell['ci_high']:.1f})"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    if share is None:
        return "?"
    return f"{100 * share:+.1f}"
