"""Charts of points with their intervals as SVG: no line joins points that were measured apart."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.apps.pages.labels import short_labels
from spscanner_rag.lab.evaluation.report.tables import Share
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.text.escaping import escaped_line

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 54, 14, 14, 44
COLOURS = 8
"""Classes c1 to c8 of views/page.css."""

_APART = 8.0  # between two series at one tick
_SIZE = 4.0  # half of a marker


class Look(NamedTuple):
    """How a setting appears everywhere on the page: its label, its retriever's colour, its unit's shape."""

    label: str
    name: str  # the whole label
    colour: str  # class
    unit: str
    hollow: bool  # a variant of a setting


class Series(NamedTuple):
    """The points of one setting."""

    look: Look
    shares: Sequence[Share | None]  # one for each tick


def looks_of(settings: Sequence[Setting]) -> list[Look]:
    """The look of each setting: one colour for a retriever, whatever its unit and variants."""
    retrievers = list(dict.fromkeys(setting.retriever for setting in settings))
    labels = short_labels([setting.label for setting in settings])
    return [
        Look(
            label,
            setting.label,
            f"c{retrievers.index(setting.retriever) % COLOURS + 1}",
            setting.unit,
            bool(setting.variants),
        )
        for label, setting in zip(labels, settings, strict=True)
    ]


def point_chart(title: str, x_label: str, ticks: Sequence[str], series: Sequence[Series]) -> str:
    """A chart of shares over evenly spaced categories (``ticks``), as SVG; screen readers read the title."""
    highest = max([0.05, *(share["value"] for own in series for share in own.shares if share)])
    step = _step(highest)
    top = min(1.0, step * math.ceil(highest / step - 1e-9))  # the next step above all values
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escaped_line(title)}">',
        *_grid(top),
        *(
            f'<text class="tick" x="{_x(i, len(ticks)):.1f}" y="{HEIGHT - BOTTOM + 18}">'
            f"{escaped_line(tick)}</text>"
            for i, tick in enumerate(ticks)
        ),
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}">{escaped_line(x_label)}</text>',
    ]
    room = (WIDTH - LEFT - RIGHT) / max(1, len(ticks)) * 0.8
    apart = min(_APART, room / max(1, len(series)))
    for number, own in enumerate(series):
        parts += _points(own, apart * (number - (len(series) - 1) / 2), top)
    return "".join([*parts, "</svg>"])


def legend(looks: Sequence[Look]) -> str:
    """The labels with their markers, as HTML."""
    items = (
        f'<li title="{escaped_line(look.name)}"><svg viewBox="0 0 12 12" class="key" aria-hidden="true">'
        f"{_marker(look, 6, 6)}</svg>{escaped_line(look.label)}</li>"
        for look in looks
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _step(highest: float) -> float:
    return 0.2 if highest > 0.5 else 0.1 if highest > 0.2 else 0.05


def _grid(top: float) -> list[str]:
    step = _step(top)
    parts = []
    for number in range(round(top / step) + 1):
        y = _y(number * step, top)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="share" x="{LEFT - 8}" y="{y + 4:.1f}">{100 * number * step:.0f}%</text>')
    return parts


def _points(series: Series, shift: float, top: float) -> list[str]:
    parts = []
    for i, share in enumerate(series.shares):
        if share is None:
            continue
        x, y = _x(i, len(series.shares)) + shift, _y(share["value"], top)
        title = f"{series.look.name}: {100 * share['value']:.1f}%"
        if share["ci_low"] is not None and share["ci_high"] is not None:
            title += f" ({100 * share['ci_low']:.1f} to {100 * share['ci_high']:.1f})"
            low, high = (_y(min(max(bound, 0), top), top) for bound in (share["ci_low"], share["ci_high"]))
            ends = f'x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"'
            parts.append(f'<line class="interval {series.look.colour}" {ends}/>')
        parts.append(f"<g><title>{escaped_line(title)}</title>{_marker(series.look, x, y)}</g>")
    return parts


def _marker(look: Look, x: float, y: float) -> str:
    """A circle for sentences, a square for chunks, a diamond for passages, a triangle for documents."""
    names = f'class="point {look.colour}{" hollow" if look.hollow else ""}"'
    if look.unit == "sentence":
        return f'<circle {names} cx="{x:.1f}" cy="{y:.1f}" r="{_SIZE}"/>'
    corners = {
        "chunk": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "passage": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    }.get(look.unit, ((0, -1.2), (1.2, 1), (-1.2, 1)))
    path = " ".join(f"{x + dx * _SIZE:.1f},{y + dy * _SIZE:.1f}" for dx, dy in corners)
    return f'<polygon {names} points="{path}"/>'


def _x(i: int, count: int) -> float:
    width = WIDTH - LEFT - RIGHT
    return LEFT + width * (i + 0.5) / max(count, 1)


def _y(share: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share / top)
