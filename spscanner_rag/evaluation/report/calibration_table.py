"""Calibration of the retrievers whose scores are probabilities, from the records of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import add
from typing import TypedDict

import numpy as np

from spscanner_rag.evaluation.records import Record
from spscanner_rag.evaluation.report.sections import Section, Share, percent
from spscanner_rag.evaluation.run import Setting
from spscanner_rag.evaluation.statistics import Average, Estimate, Sample, macro_estimate, micro_estimate
from spscanner_rag.evidence.calibration import THRESHOLD, Bins, Reliability, auroc


class Rate(Share):
    """A share of so many questions."""

    questions: int


class CalibrationRow(TypedDict):
    """What is known of one retriever on one source, or "macro" or "micro" on all."""

    source: str
    retriever: str
    sentences: int
    calibration_error: float | None  # None where no question is answerable
    hit_rate: Rate | None  # answerable questions
    false_alarm_rate: Rate | None  # unanswerable questions; None where there are none
    auroc: float | None
    reliability: list[dict[str, float | None]]


@dataclass
class _Group:
    """The questions of one source."""

    answerable: list[Record] = field(default_factory=list)
    unanswerable: list[Record] = field(default_factory=list)

    @property
    def bins(self) -> Bins:
        return reduce(
            add, (Bins.from_filled(record.bins or []) for record in self.answerable), Bins.of([], [])
        )


def has_probabilities(retriever: str) -> bool:
    """Whether a retriever's scores are probabilities: the scanner's, also in the context ablation."""
    return retriever.partition(":")[0].partition(",")[0] == "scanner"


def calibration_rows(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[CalibrationRow]:
    """All rows of the calibration.

    Parameters
    ----------
    records
        Of a run with ``calibrate``, answerable and unanswerable, in any order.
    settings
        Those that were calibrated.
    seed
        Of the bootstrap.

    Returns
    -------
    list of CalibrationRow
        By setting; of each the sources in alphabetical order, then "macro" (means over sources; of the rates and
        the AUROC over sources with both kinds of questions, if there are any) and "micro" (all sentences and
        questions together).
    """
    groups: dict[str, dict[str, _Group]] = {setting.retriever: {} for setting in settings}
    for record in sorted(records, key=lambda record: record.key):
        if record.retriever in groups and record.highest is not None:
            group = groups[record.retriever].setdefault(record.source, _Group())
            (group.answerable if record.answerable else group.unanswerable).append(record)
    rows = []
    for retriever, sources in groups.items():
        for source, group in sources.items():
            rows.append(_row(retriever, source, {source: group}, "macro", seed))
        if sources:
            rows.append(_row(retriever, "macro", sources, "macro", seed))
            rows.append(_row(retriever, "micro", sources, "micro", seed))
    return rows


def calibration_sections(rows: Sequence[CalibrationRow], left_out: Sequence[str]) -> list[Section]:
    """The tables of a result.

    Parameters
    ----------
    rows
        From `calibration_rows`.
    left_out
        Names of the retrievers that have no probabilities.
    """
    others = f" Left out, since their scores are no probabilities: {', '.join(left_out)}." if left_out else ""
    rates = Section(
        "Calibration",
        f"Calibration error (ECE, {_bins(rows)} bins) of the sentences of answerable questions; share of "
        f"questions with a sentence of probability {THRESHOLD} or more, where the document answers the question "
        "(hits) and where it does not (false alarms); AUROC of the highest probability, answerable against not. "
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
    bins = Section(
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
    return [rates, bins]


def _row(
    retriever: str, name: str, groups: Mapping[str, _Group], average: Average, seed: int
) -> CalibrationRow:
    labelled = [group.bins for group in groups.values() if group.answerable]
    pooled = reduce(add, labelled, Bins.of([], []))
    errors = [bins.calibration_error() for bins in labelled]
    if average == "micro" and errors:
        errors = [pooled.calibration_error()]
    both = {source: group for source, group in groups.items() if group.answerable and group.unanswerable}
    rated = both or groups
    return CalibrationRow(
        source=name,
        retriever=retriever,
        sentences=int(pooled.counts.sum()),
        calibration_error=float(np.mean(errors)) if errors else None,
        hit_rate=_alarms({source: group.answerable for source, group in rated.items()}, average, seed),
        false_alarm_rate=_alarms({s: group.unanswerable for s, group in rated.items()}, average, seed),
        auroc=_auroc(list(both.values()), average),
        reliability=[Reliability._asdict(cell) for cell in pooled.reliability()],
    )


def _alarms(questions: Mapping[str, Sequence[Record]], average: Average, seed: int) -> Rate | None:
    """Share of the questions with a sentence at the threshold."""
    samples = {
        source: Sample(
            [float(_highest(record) >= THRESHOLD) for record in records],
            [record.doc_id for record in records],
        )
        for source, records in questions.items()
        if records
    }
    if not samples:
        return None
    mean = macro_estimate if average == "macro" else micro_estimate
    found: Estimate = mean(samples, seed=seed)
    return Rate(value=found.value, ci_low=found.low, ci_high=found.high, questions=found.questions)


def _auroc(both: Sequence[_Group], average: Average) -> float | None:
    if not both:
        return None
    scores = [
        [list(map(_highest, part)) for part in (group.answerable, group.unanswerable)] for group in both
    ]
    if average == "micro":
        scores = [[list(chain(*part)) for part in zip(*scores, strict=True)]]
    areas = [auroc(answerable, unanswerable) for answerable, unanswerable in scores]
    return float(np.mean(areas))


def _highest(record: Record) -> float:
    assert record.highest is not None  # of the records that calibration_rows takes
    return record.highest


def _bins(rows: Sequence[CalibrationRow]) -> int:
    return len(rows[0]["reliability"]) if rows else 0


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _rate(rate: Rate | None) -> str:
    return percent(rate) + (f" of {rate['questions']:,}" if rate else "")
