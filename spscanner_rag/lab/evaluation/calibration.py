"""Calibration of the retrievers whose scores are probabilities, from the records of a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.result import Table, shown
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import Average, Estimate, Sample, by_setting, estimate
from spscanner_rag.lab.evidence.calibration import (
    THRESHOLD,
    auroc,
    bins_of,
    calibration_error,
    from_filled,
    reliability,
)


class CalibrationRow(TypedDict):
    """The calibration of one retriever on one source, or the "macro" or "micro" mean over all."""

    source: str
    retriever: str
    sentences: int
    calibration_error: float | None  # None where no question is answerable
    hit_rate: Estimate | None  # answerable questions
    false_alarm_rate: Estimate | None  # unanswerable questions; None where there are none
    auroc: float | None
    reliability: list[dict[str, float | None]]


def calibration_rows(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[CalibrationRow]:
    """All rows of the calibration: sources in alphabetical order, then "macro", then "micro", of each setting.

    The mean rates and AUROC are over the sources with both answerable and unanswerable questions, if any.
    """
    rows = []
    calibrated = (record for record in records if record.highest is not None)
    for setting, sources in by_setting(calibrated, settings).items():
        for source, group in sources.items():
            rows.append(_row(setting, source, {source: group}, "macro", seed))
        rows.append(_row(setting, "macro", sources, "macro", seed))
        rows.append(_row(setting, "micro", sources, "micro", seed))
    return rows


def calibration_tables(rows: Sequence[CalibrationRow], left_out: Sequence[str]) -> list[Table]:
    """The tables of a result, from `calibration_rows` and the labels of settings without probabilities."""
    others = (
        f" Left out, since their scores are not probabilities: {', '.join(left_out)}." if left_out else ""
    )
    bins = len(rows[0]["reliability"]) if rows else 0
    rates = Table(
        "Calibration",
        f"Calibration error (ECE, {bins} bins) of the sentences of answerable questions; share of "
        f"questions of which a probability of {THRESHOLD} or more says that the document answers them (without an "
        "encoder of its own: that a sentence does), where it does (hits) and where it does not (false alarms); "
        "AUROC of that probability, answerable against not. "
        f"Percent, with 95 % intervals.{others}",
        ["source", "retriever", "sentences", "calibration error", "hits", "false alarms", "AUROC"],
        [
            [
                row["source"],
                row["retriever"],
                f"{row['sentences']:,}",
                _percent(row["calibration_error"], 2),
                _rate(row["hit_rate"]),
                _rate(row["false_alarm_rate"]),
                _percent(row["auroc"], 1),
            ]
            for row in rows
        ],
    )
    by_bin = Table(
        "Reliability",
        "All sentences of answerable questions, by their probability: its mean, and the share that is relevant.",
        ["probability", "retriever", "mean", "relevant", "sentences"],
        [
            [
                f"{100 * (cell['low'] or 0):.0f} to {100 * (cell['high'] or 0):.0f}",
                row["retriever"],
                _percent(cell["probability"], 1),
                _percent(cell["relevant"], 1),
                f"{cell['sentences']:,}",
            ]
            for row in rows
            if row["source"] == "micro"
            for cell in row["reliability"]
        ],
    )
    return [rates, by_bin]


def _row(
    setting: Setting, name: str, sources: Mapping[str, Sequence[Record]], average: Average, seed: int
) -> CalibrationRow:
    present, absent = (
        {
            source: own
            for source, group in sources.items()
            if (own := [r for r in group if r.answerable == kind])
        }
        for kind in (True, False)
    )
    none = bins_of([], [])
    labelled = [sum((from_filled(r.bins or []) for r in group), none) for group in present.values()]
    pooled: NDArray[np.float64] = sum(labelled, none)
    both = [source for source in present if source in absent]
    asked = [{s: own[s] for s in both or own} for own in (present, absent)]
    compared = [(present[source], absent[source]) for source in both]
    if average == "micro":  # over the questions of all sources together
        labelled = [pooled] if labelled else []
        own, others = (list(chain(*each.values())) for each in asked)
        compared = [(own, others)] if both else []
    return CalibrationRow(
        source=name,
        retriever=setting.name,
        sentences=int(pooled[:, 0].sum()),
        calibration_error=_mean(map(calibration_error, labelled)),
        hit_rate=_alarms(asked[0], average, seed),
        false_alarm_rate=_alarms(asked[1], average, seed),
        auroc=_mean(auroc(_highest(own), _highest(others)) for own, others in compared),
        reliability=reliability(pooled),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def _alarms(questions: Mapping[str, Sequence[Record]], average: Average, seed: int) -> Estimate | None:
    samples = {
        source: Sample(np.array(_highest(group)) >= THRESHOLD, [record.doc_id for record in group])
        for source, group in questions.items()
    }
    return estimate(samples, average, seed=seed) if samples else None


def _highest(records: Iterable[Record]) -> list[float]:
    return [record.highest for record in records if record.highest is not None]


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _rate(rate: Estimate | None) -> str:
    return f"{shown(rate)} of {rate['questions']:,}" if rate else "-"
