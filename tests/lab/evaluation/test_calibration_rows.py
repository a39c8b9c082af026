"""Calibration, from handmade records."""

import pytest

from spscanner_lab.evaluation.calibration_rows import (
    calibration_rows,
    calibration_tables,
)
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evidence.calibration import bins_of, filled
from spscanner_rag.baselines.settings import Setting

SCANNER = Setting("scanner", "sentence")


def probable(
    source: str, doc: str, qid: str, p: list[float], relevant: list[bool] | None
) -> Record:
    """For a question on a document whose sentences have these probabilities.

    None if it does not answer.
    """
    bins = None if relevant is None else filled(bins_of(p, relevant))
    own = {"answerable": relevant is not None, "highest": max(p), "bins": bins}
    return Record(*SCANNER.key, source, "dev", doc, qid, 90, {}, **own)  # type: ignore[arg-type]


PROBABLE = [
    probable("a", "d1", "q1", [0.02, 0.9], [False, True]),
    probable("a", "d2", "q2", [0.02, 0.5], [False, True]),
    probable("a", "d2", "q3", [0.02, 0.3], [False, True]),
    probable("a", "d1", "n1", [0.02, 0.6], None),
    probable("a", "d2", "n2", [0.02, 0.1], None),
    probable("b", "d3", "q4", [0.02, 0.03], [False, False]),
]


CALIBRATED = {row["source"]: row for row in calibration_rows(PROBABLE, [SCANNER])}


def test_calibration_error() -> None:
    error = (
        3 * 0.02 + 0.1 + 0.5 + 0.7
    ) / 6  # every relevant sentence is in a different bin
    assert CALIBRATED["a"]["calibration_error"] == pytest.approx(error)
    assert CALIBRATED["b"]["calibration_error"] == pytest.approx(0.025)
    assert CALIBRATED["macro"]["calibration_error"] == pytest.approx(
        (error + 0.025) / 2
    )
    pooled = (4 * 0.02 + 0.03 + 0.1 + 0.5 + 0.7) / 8
    assert CALIBRATED["micro"]["calibration_error"] == pytest.approx(pooled)
    assert {source: row["sentences"] for source, row in CALIBRATED.items()} == {
        "a": 6,
        "b": 2,
        "macro": 8,
        "micro": 8,
    }


def test_rates_at_the_threshold() -> None:
    hits, alarms = CALIBRATED["a"]["hit_rate"], CALIBRATED["a"]["false_alarm_rate"]
    assert hits is not None
    assert alarms is not None
    assert (hits["value"], hits["questions"]) == (
        pytest.approx(2 / 3),
        3,
    )  # exactly one half counts
    assert (alarms["value"], alarms["questions"]) == (0.5, 2)
    assert alarms["ci_low"] == 0
    assert alarms["ci_high"] == 1
    own = CALIBRATED["b"]["hit_rate"]
    assert own is not None
    assert own["value"] == 0
    assert CALIBRATED["b"]["false_alarm_rate"] is CALIBRATED["b"]["auroc"] is None
    for average in ("macro", "micro"):  # over sources with both kinds of questions
        assert CALIBRATED[average]["hit_rate"] == hits
        assert CALIBRATED[average]["false_alarm_rate"] == alarms


def test_auroc() -> None:
    assert CALIBRATED["a"]["auroc"] == pytest.approx(
        4 / 6
    )  # 0.9, 0.5, 0.3 against 0.6, 0.1
    more = [*PROBABLE, probable("b", "d3", "n3", [0.95], None)]
    rows = {row["source"]: row for row in calibration_rows(more, [SCANNER])}
    assert rows["b"]["auroc"] == 0
    assert rows["macro"]["auroc"] == pytest.approx(2 / 6)
    assert rows["micro"]["auroc"] == pytest.approx(
        4 / 12
    )  # all questions of both sources together


def test_only_unanswerable_questions() -> None:
    rows = calibration_rows(PROBABLE[3:5], [SCANNER])
    for row in rows:
        assert row["calibration_error"] is row["hit_rate"] is row["auroc"] is None
        assert row["false_alarm_rate"] is not None
        assert row["false_alarm_rate"]["value"] == 0.5


def test_tables() -> None:
    rates, bins = calibration_tables(list(CALIBRATED.values()), ["bm25, chunks"])
    assert "15 bins" in rates.about
    assert rates.about.endswith("not probabilities: bm25, chunks.")
    cells = {line[0]: line for line in rates.body}
    assert cells["a"][1:4] == ["scanner", "6", "22.67"]
    assert cells["a"][5:] == ["50.0 (0.0 to 100.0) of 2", "66.7"]
    assert cells["b"][4:] == ["0.0 of 1", "-", "-"]
    assert len(bins.body) == 15
    assert bins.body[0] == ["0 to 7", "scanner", "2.2", "0.0", "5"]
    assert bins.body[1] == ["7 to 13", "scanner", "-", "-", "0"]
    assert bins.body[13] == ["87 to 93", "scanner", "90.0", "100.0", "1"]
    assert "Left out" not in calibration_tables(list(CALIBRATED.values()), [])[0].about
