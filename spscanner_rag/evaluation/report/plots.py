"""Line charts as SVG."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.evaluation.report.tables import Share
from spscanner_rag.views.escaping import escaped_line

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 44
COLOURS = 8
"""Classes c1 to c8 of page.css."""


class Line(NamedTuple):
    """One line of a chart."""

    label: str
    shares: Sequence[Share | None]  # one for each tick


def line_chart(title: str, x_label: str, ticks: Sequence[str], lines: Sequence[Line]) -> str:
    """A chart of shares over evenly spaced categories (``ticks``), as SVG; screen readers read the title."""
    highest = max([0.05, *(share["value"] for line in lines for share in line.shares if share)])
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
    for number, line in enumerate(lines):
        parts += _line(number, line, top)
    return "".join([*parts, "</svg>"])


def legend(labels: Sequence[str]) -> str:
    """The labels with the colours and strokes of their lines, as HTML."""
    items = (
        f'<li><svg viewBox="0 0 26 10" class="key" aria-hidden="true">'
        f'<line class="{_class(number)}" x1="1" y1="5" x2="25" y2="5"/></svg>{escaped_line(label)}</li>'
        for number, label in enumerate(labels)
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


def _line(number: int, line: Line, top: float) -> list[str]:
    name = _class(number)
    parts, points = [], []
    for i, share in enumerate(line.shares):
        if share is None:
            continue
        x = _x(i, len(line.shares))
        points.append((x, _y(share["value"], top), share["value"]))
        if share["ci_low"] is not None and share["ci_high"] is not None:
            x += 1.5 * (number - 2)  # so that the intervals of several lines do not overlap
            low, high = (_y(min(max(bound, 0), top), top) for bound in (share["ci_low"], share["ci_high"]))
            ends = f'x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"'
            parts.append(f'<line class="interval {name}" {ends}/>')
    parts.append(f'<polyline class="{name}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)}"/>')
    for x, y, value in points:
        title = f"<title>{escaped_line(line.label)}: {100 * value:.1f}%</title>"
        parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">{title}</circle>')
    return parts


def _class(number: int) -> str:
    return f"c{number % COLOURS + 1}"


def _x(i: int, count: int) -> float:
    width = WIDTH - LEFT - RIGHT
    return LEFT + width * (i + 0.5) / max(count, 1)


def _y(share: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share / top)
