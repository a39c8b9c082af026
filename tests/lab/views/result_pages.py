"""Records of two settings with hostile names, and the page of their result."""

from collections.abc import Iterator

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import Difference, length_bin, rows_of
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.evidence.metrics import CUTOFFS
from spscanner_lab.views.evaluation_page import render_evaluation
from spscanner_rag.baselines.settings import Setting
from tests.apps.pages.checked_page import HOSTILE

SETTINGS = [Setting("scanner", "sentence"), Setting(f"dense:{HOSTILE}", "chunk")]


METRICS = ("recall", "ndcg", "precision", "success", "mrr")


def records() -> Iterator[Record]:
    for setting in SETTINGS:
        best = 50 if setting.unit == "sentence" else 5
        for number in range(6):
            share = number / 6 if setting is SETTINGS[0] else 0.25
            yield Record(
                *setting.key,
                source=f"source {number % 2} {HOSTILE}",
                split="dev",
                doc_id=f"d{number}",
                qid="q",
                characters=7_000 * (number + 1),
                metrics={f"{metric}@{k}": share for metric in METRICS for k in CUTOFFS}
                | {
                    "mrr": share,
                    "recall_at_tokens@250": share,
                    "recall_at_tokens@1000": share,
                }
                | {f"tokens@{k}": 40 * k for k in CUTOFFS}
                | {
                    f"recall_by_length@{length_bin(7_000 * (number + 1))}": share,
                    "seconds": 0.5,
                }
                | {f"recall_by_position@{best}@{part}": share for part in range(1, 11)},
            )


def page_with(
    found: list[Record], differences: list[Difference], *tables: Table
) -> str:
    result = EvaluationResult(
        rows_of(found, SETTINGS), differences, SETTINGS, tables=tables
    )
    return render_evaluation(result, {"Command": f"spscanner eval {HOSTILE}"})
