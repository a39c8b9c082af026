"""Calibration of the retrievers whose scores are probabilities, from the records of a run."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import add
from typing import TypedDict

import numpy as np

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.rows import by_setting
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import Average, Rate, Sample, rate
from spscanner_rag.lab.evaluation.tables import Table, shown
from spscanner_rag.lab.evidence.calibration import THRESHOLD, Bins, Reliability, auroc


class CalibrationRow(TypedDict):
    """The calibration of one retriever on one source, or the "macro" or "micro" mean over all."""

    source: str
    retriever: str
    sentences: int
    calibration_error: float | None  # None where no question is answerable
    hit_rate: Rate | None  # answerable questions
    false_alarm_rate: Rate | None  # unanswerable questions; None where there are none
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
    reliability = Table(
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
    return [rates, reliability]


def _row(
    setting: Setting, name: str, sources: Mapping[str, Sequence[Record]], average: Average, seed: int
) -> CalibrationRow:
    present: dict[str, list[Record]] = {}
    absent: dict[str, list[Record]] = {}
    for record in chain(*sources.values()):
        (present if record.answerable else absent).setdefault(record.source, []).append(record)
    labelled = [
        reduce(add, (Bins.from_filled(record.bins or []) for record in group), Bins.of([], []))
        for group in present.values()
    ]
    pooled = reduce(add, labelled, Bins.of([], []))
    if average == "micro" and labelled:
        labelled = [pooled]
    errors = [bins.calibration_error() for bins in labelled]
    both = present.keys() & absent.keys()
    rated = both or sources.keys()
    areas = [(_highest(present[source]), _highest(absent[source])) for source in sorted(both)]
    if average == "micro" and areas:
        positive, negative = zip(*areas, strict=True)
        areas = [(list(chain(*positive)), list(chain(*negative)))]
    return CalibrationRow(
        source=name,
        retriever=setting.name,
        sentences=int(pooled.counts.sum()),
        calibration_error=float(np.mean(errors)) if errors else None,
        hit_rate=_alarms({s: group for s, group in present.items() if s in rated}, average, seed),
        false_alarm_rate=_alarms({s: group for s, group in absent.items() if s in rated}, average, seed),
        auroc=float(np.mean([auroc(above, below) for above, below in areas])) if areas else None,
        reliability=[Reliability._asdict(cell) for cell in pooled.reliability()],
    )


def _alarms(questions: Mapping[str, Sequence[Record]], average: Average, seed: int) -> Rate | None:
    samples = {
        source: Sample(np.array(_highest(group)) >= THRESHOLD, [record.doc_id for record in group])
        for source, group in questions.items()
    }
    return rate(samples, average, seed)


def _highest(records: Iterable[Record]) -> list[float]:
    return [record.highest for record in records if record.highest is not None]


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _rate(rate: Rate | None) -> str:
    return shown(rate) + (f" of {rate['questions']:,}" if rate else "")
