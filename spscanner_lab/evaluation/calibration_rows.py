"""Whether scores are probabilities: the calibration of each setting, and its tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.rows import by_setting
from spscanner_lab.evaluation.statistics import Average, Estimate, Sample, estimate
from spscanner_lab.evaluation.tables import Table, shown
from spscanner_lab.evidence.calibration import (
    THRESHOLD,
    auroc,
    bins_of,
    calibration_error,
    from_filled,
    reliability,
)
from spscanner_rag.baselines.settings import Setting

_Sources = Mapping[str, Sequence[Record]]


class CalibrationRow(TypedDict):
    """The calibration of one retriever on one source, or its mean over all sources.

    The source is then "macro" or "micro". What has no question is None:
    ``calibration_error`` and ``hit_rate`` without an answerable question,
    ``false_alarm_rate`` without an unanswerable one, ``auroc`` without both.
    """

    source: str
    retriever: str
    sentences: int
    calibration_error: float | None
    hit_rate: Estimate | None
    false_alarm_rate: Estimate | None
    auroc: float | None
    reliability: list[dict[str, float | None]]


def calibration_rows(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[CalibrationRow]:
    """All rows of the calibration.

    For each setting come the sources in alphabetical order, then "macro" and "micro".
    Mean rates and AUROC are over the sources with both answerable and unanswerable
    questions, if there are any.
    """
    rows = []
    calibrated = filter(_is_calibrated, records)
    for setting, sources in by_setting(calibrated, settings).items():
        for source, group in sources.items():
            rows.append(_row(setting, source, {source: group}, "macro", seed))
        rows.append(_row(setting, "macro", sources, "macro", seed))
        rows.append(_row(setting, "micro", sources, "micro", seed))
    return rows


def _is_calibrated(record: Record) -> bool:
    return record.highest is not None


def _row(
    setting: Setting, name: str, sources: _Sources, average: Average, seed: int
) -> CalibrationRow:
    answerable = _with_answerable(sources, True)
    unanswerable = _with_answerable(sources, False)
    no_bins = bins_of([], [])
    bins_by_source = []
    for group in answerable.values():
        bins_of_records = (from_filled(record.bins or []) for record in group)
        bins_by_source.append(sum(bins_of_records, no_bins))
    all_bins: NDArray[np.float64] = sum(bins_by_source, no_bins)
    compared = _compared(answerable, unanswerable, average)
    if average == "micro":  # over the questions of all sources together
        bins_by_source = [all_bins] if bins_by_source else []
    areas = []
    for present, absent in compared.pairs:
        areas.append(auroc(_highest(present), _highest(absent)))
    return CalibrationRow(
        source=name,
        retriever=setting.name,
        sentences=int(all_bins[:, 0].sum()),
        calibration_error=_mean(list(map(calibration_error, bins_by_source))),
        hit_rate=_alarms(compared.answerable, average, seed),
        false_alarm_rate=_alarms(compared.unanswerable, average, seed),
        auroc=_mean(areas),
        reliability=reliability(all_bins),
    )


class _Compared(NamedTuple):
    """The records whose rates are compared, and the pairs that AUROC is of."""

    answerable: _Sources
    unanswerable: _Sources
    pairs: list[tuple[Sequence[Record], Sequence[Record]]]


def _compared(
    answerable: _Sources, unanswerable: _Sources, average: Average
) -> _Compared:
    """Only the sources with both kinds of questions, if there are any."""
    with_both = [source for source in answerable if source in unanswerable]
    if not with_both:
        return _Compared(answerable, unanswerable, [])
    present = {}
    absent = {}
    for source in with_both:
        present[source] = answerable[source]
        absent[source] = unanswerable[source]
    pairs: list[tuple[Sequence[Record], Sequence[Record]]] = []
    if average == "micro":
        pairs.append((list(chain(*present.values())), list(chain(*absent.values()))))
    else:
        pairs += zip(present.values(), absent.values(), strict=True)
    return _Compared(present, absent, pairs)


def _with_answerable(sources: _Sources, answerable: bool) -> dict[str, list[Record]]:
    """The records of one kind of question, for the sources that have any."""
    records_by_source = {}
    for source, group in sources.items():
        records = [record for record in group if record.answerable == answerable]
        if records:
            records_by_source[source] = records
    return records_by_source


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _alarms(questions: _Sources, average: Average, seed: int) -> Estimate | None:
    """The share of questions whose highest probability reaches the threshold."""
    if not questions:
        return None
    samples = {}
    for source, group in questions.items():
        is_alarm = np.array(_highest(group)) >= THRESHOLD
        samples[source] = Sample(is_alarm, [record.doc_id for record in group])
    return estimate(samples, average, seed=seed)


def _highest(records: Iterable[Record]) -> list[float]:
    return [record.highest for record in records if record.highest is not None]


def calibration_tables(
    rows: Sequence[CalibrationRow], left_out: Sequence[str]
) -> list[Table]:
    """The tables of `calibration_rows`.

    ``left_out`` are the labels of the settings without probabilities.
    """
    others = ""
    if left_out:
        others = (
            f" Left out, since their scores are not probabilities:"
            f" {', '.join(left_out)}."
        )
    bins = len(rows[0]["reliability"]) if rows else 0
    about = (
        f"Calibration error (ECE, {bins} bins) of the sentences of answerable"
        f" questions; share of questions with a probability of {THRESHOLD} or more that"
        " the document answers them (without an encoder of its own: that a sentence"
        " does), if it does (hits) and if it does not (false alarms); AUROC of that"
        " probability, answerable questions against unanswerable ones. Percent, with"
        f" 95 % intervals.{others}"
    )
    head = "source,retriever,sentences,calibration error,hits,false alarms,AUROC"
    rates = Table("Calibration", about, head.split(","), list(map(_rate_cells, rows)))
    by_bin = Table(
        "Reliability",
        "All sentences of answerable questions, by probability: its mean, and the share"
        " of relevant sentences.",
        ["probability", "retriever", "mean", "relevant", "sentences"],
        list(_reliability_cells(rows)),
    )
    return [rates, by_bin]


def _rate_cells(row: CalibrationRow) -> list[str]:
    return [
        row["source"],
        row["retriever"],
        f"{row['sentences']:,}",
        _percent(row["calibration_error"], 2),
        _rate(row["hit_rate"]),
        _rate(row["false_alarm_rate"]),
        _percent(row["auroc"], 1),
    ]


def _reliability_cells(rows: Sequence[CalibrationRow]) -> Iterator[list[str]]:
    for row in rows:
        if row["source"] != "micro":
            continue
        for bin_row in row["reliability"]:
            low = 100 * (bin_row["low"] or 0)
            high = 100 * (bin_row["high"] or 0)
            yield [
                f"{low:.0f} to {high:.0f}",
                row["retriever"],
                _percent(bin_row["probability"], 1),
                _percent(bin_row["relevant"], 1),
                f"{bin_row['sentences']:,}",
            ]


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _rate(rate: Estimate | None) -> str:
    return f"{shown(rate)} of {rate['questions']:,}" if rate else "-"
