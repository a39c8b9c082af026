"""The charts of recall on the page of an evaluation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_lab.evaluation.question_metrics import (
    OTHER_POSITION_CUTOFFS,
    POSITION_BINS,
    POSITION_CUTOFFS,
)
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import ResultRow
from spscanner_rag.baselines.settings import Setting

_BY_POSITION = "recall_by_position"


@dataclass(frozen=True)
class Chart:
    """Shares for each setting of the page at evenly spaced ticks.

    None where there is no share.
    """

    title: str
    x_label: str
    ticks: Sequence[int]
    series: Sequence[Sequence[ResultRow | None]]

    width = 560
    height = 300
    left = 54
    right = 14
    top = 14
    bottom = 44

    @property
    def shows_something(self) -> bool:
        """Whether a setting has a share at a tick."""
        return any(any(shares) for shares in self.series)

    @property
    def highest(self) -> float:
        """The share at the top edge: the largest value, rounded up to a fifth."""
        largest = 0.05
        for shares in self.series:
            for share in shares:
                if share:
                    largest = max(largest, float(share["value"]))
        return 0.2 * math.ceil(largest / 0.2 - 1e-9)

    @property
    def lines(self) -> list[float]:
        """The shares at which grid lines are drawn."""
        return [number * self.highest / 4 for number in range(5)]

    def x(self, tick: int, series: int | None = None) -> float:
        """The horizontal place of a tick.

        With ``series``, that of the series' marker beside the tick.
        """
        room = (self.width - self.left - self.right) / max(1, len(self.ticks))
        shift = 0.0
        if series is not None:
            apart = min(8.0, 0.8 * room / max(1, len(self.series)))
            shift = apart * (series - (len(self.series) - 1) / 2)
        return self.left + room * (tick + 0.5) + shift

    def y(self, share: float) -> float:
        """The vertical place of a share, counted from the top."""
        inside = min(max(share, 0.0), self.highest)
        room = self.height - self.top - self.bottom
        return self.top + room * (1 - inside / self.highest)


def charts_of(result: EvaluationResult) -> list[Chart]:
    """The charts of recall that have something to show.

    They show each setting by cut-off, tokens, place of the evidence and length of the
    document. A run of whole documents has no tokens to choose, for example.
    """
    charts = [
        _chart(result, "Recall at k", "best k units", "recall", result.cutoffs),
        _chart(
            result,
            "Recall at equal tokens",
            "tokens that may be retrieved",
            "recall_at_tokens",
            _ticks(result, "recall_at_tokens"),
        ),
        _chart(
            result,
            "Recall by place of the evidence",
            "tenth of the document; the best 50 sentences, or 5 chunks",
            _BY_POSITION,
            range(1, POSITION_BINS + 1),
        ),
    ]
    lengths = _ticks(result, "recall_by_length")
    if len(lengths) > 1:  # documents of one length have the recall of the first chart
        title = "Recall@10 by length of the document"
        by_length = _chart(result, title, "tokens, from", "recall_by_length", lengths)
        charts.append(by_length)
    return [chart for chart in charts if chart.shows_something]


def _ticks(result: EvaluationResult, metric: str) -> list[int]:
    """The numbers k of a metric in a result."""
    ticks = set()
    for row in result.rows:
        if row["metric"] == metric:
            ticks.add(row["k"] or 0)
    return sorted(ticks)


def _chart(
    result: EvaluationResult,
    title: str,
    x_label: str,
    metric: str,
    ticks: Sequence[int],
) -> Chart:
    series = []
    for setting in result.settings:
        name = _metric_of(setting, metric)
        shares = [result.find(setting, name, tick, "macro") for tick in ticks]
        series.append(shares)
    return Chart(title, x_label, ticks, series)


def _metric_of(setting: Setting, metric: str) -> str:
    """The name of a metric in rows, with the cut-off of that by position."""
    if metric != _BY_POSITION:
        return metric
    cutoffs = POSITION_CUTOFFS.get(setting.unit, OTHER_POSITION_CUTOFFS)
    return f"{metric}@{cutoffs[-1]}"
