"""The result of a run: its rows and paired tests, and the columns that tables show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from spscanner_lab.evaluation.rows import Difference, ResultRow
from spscanner_lab.evaluation.statistics import AVERAGES
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.evidence.metrics import CUTOFFS
from spscanner_rag.baselines.settings import Setting

Column = tuple[str, int | None]  # a metric and its k

WORK_COLUMNS: dict[str, Column] = {
    "TFLOPs": ("tflops", None),
    "TFLOPs, padded": ("tflops_padded", None),
}
"""Columns of the operations of a question, without and with padding."""


@dataclass(frozen=True)
class EvaluationResult:
    """The result of a run.

    ``settings`` are in the order of the tables, ``tables`` are additional ones, and
    ``files`` has the contents of additional JSON files by name. ``cutoffs`` are the
    numbers of units k of the metrics.
    """

    rows: Sequence[ResultRow]
    differences: Sequence[Difference]
    settings: Sequence[Setting]
    tables: Sequence[Table] = ()
    files: Mapping[str, object] = field(default_factory=dict)
    cutoffs: Sequence[int] = CUTOFFS

    @cached_property
    def _row_by_key(self) -> dict[tuple[str, str, str, int | None, str], ResultRow]:
        row_by_key = {}
        for row in self.rows:
            setting_key = (row["retriever"], row["unit"])
            row_by_key[*setting_key, row["metric"], row["k"], row["source"]] = row
        return row_by_key

    def find(
        self, setting: Setting, metric: str, k: int | None, source: str
    ) -> ResultRow | None:
        """The row of a metric, if there is one."""
        return self._row_by_key.get((*setting.key, metric, k, source))

    @property
    def middle(self) -> int:
        """The cut-off 10, or the last cut-off if 10 is not one."""
        return 10 if 10 in self.cutoffs else self.cutoffs[-1]

    @cached_property
    def sources(self) -> list[str]:
        """The sources in the order of the rows, without the means over sources."""
        names = dict.fromkeys(row["source"] for row in self.rows)
        return [name for name in names if name not in AVERAGES]

    @property
    def ranking_columns(self) -> dict[str, Column]:
        """The columns of metrics that depend only on the ranking, by name."""
        columns: dict[str, Column] = {}
        for k in self.cutoffs:
            columns[f"recall@{k}"] = ("recall", k)
        columns[f"nDCG@{self.middle}"] = ("ndcg", self.middle)
        columns["MRR"] = ("mrr", None)
        columns["MAP"] = ("map", None)
        return columns

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of tables of evidence, by name."""
        columns = self.ranking_columns
        columns[f"possible@{self.middle}"] = ("best_recall", self.middle)
        columns["in 1,000 tokens"] = ("recall_at_tokens", 1000)
        columns["in 2,000 tokens"] = ("recall_at_tokens", 2000)
        few_and_many = {5, 50}
        if not few_and_many <= set(self.cutoffs):
            few_and_many = {self.cutoffs[0], self.cutoffs[-1]}
        for k in sorted(few_and_many):
            columns[f"tokens@{k}"] = ("tokens", k)
        columns["seconds"] = ("seconds", None)
        columns["computing"] = ("seconds_computing", None)
        columns |= WORK_COLUMNS
        columns["peak MB"] = ("peak_megabytes", None)
        return columns
