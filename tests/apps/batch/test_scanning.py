"""Rows as records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.apps.batch.rows import Row
from spscanner_rag.apps.batch.scanning import scan_rows
from spscanner_rag.results import Selection
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scanner import Scanner
from tests.apps.batch.conftest import asked, pairs


def test_records_are_those_of_single_scans(tiny_scanner: Scanner) -> None:
    rows = asked(pairs(7))
    for row, record in zip(
        rows,
        scan_rows(tiny_scanner, rows, Selection(top_k=2, order="score")),
        strict=True,
    ):
        assert isinstance(row.document, str)
        alone = tiny_scanner.scan(row.query, row.document)
        best = np.sort(alone.logits)[::-1][:2]
        np.testing.assert_allclose(
            [each["logit"] for each in record["sentences"]], best, atol=1e-4
        )
        assert record["id"] == row.id
        assert record["sentence_count"] == len(alone.logits)
        assert record["document_score"] == pytest.approx(
            alone.document_score(), abs=1e-4
        )
        assert all(
            row.document[each["start"] : each["end"]] == each["text"]
            for each in record["sentences"]
        )


def test_threshold_and_texts(tiny_scanner: Scanner) -> None:
    (record,) = scan_rows(
        tiny_scanner, asked(pairs(1)), Selection(top_k=None, threshold=1.0)
    )
    assert record["sentences"] == []
    (record,) = scan_rows(
        tiny_scanner, asked(pairs(1)), Selection(top_k=None), texts=False
    )
    assert [each["text"] for each in record["sentences"]] == [None] * 3


def test_bad_rows_have_errors_and_the_others_do_not(tiny_scanner: Scanner) -> None:
    rows = [
        Row("a", None, "", "An empty question."),
        Row("b", None, "Who?", "He signed it."),
        Row("c", error="text: missing"),
        Row("d", None, "Who?", " \n"),
        Row("\ud800", None, "Who \udfff?", "A lone \ud800 surrogate."),
    ]
    records = scan_rows(tiny_scanner, rows, Selection())
    assert [record["error"] is None for record in records] == [
        False,
        True,
        False,
        True,
        True,
    ]
    assert records[3]["document_score"] is None
    assert records[4]["id"] == "\ufffd"
    assert records[4]["sentences"][0]["text"] == "A lone \ufffd surrogate."


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("no room"), RuntimeError("kernel")]
)
def test_bad_rows_are_read_alone(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    right = Scanner.scan_many

    def scan_many(self: Scanner, given: Sequence[ScanRequest]) -> Any:
        if any("treaty 2" in request.query for request in given):
            raise error
        return right(self, given)

    monkeypatch.setattr(Scanner, "scan_many", scan_many)
    records = scan_rows(tiny_scanner, asked(pairs(3)), Selection())
    assert [record["error"] is None for record in records] == [True, True, False]
    assert records[2]["error"].startswith(type(error).__name__)


def test_a_record_has_what_the_selection_returns(tiny_scanner: Scanner) -> None:
    (row,) = asked(pairs(1))
    assert isinstance(row.document, str)
    for selection in (
        Selection(top_k=1, context=1, merge=True),
        Selection(top_k=2, order="document"),
        Selection(top_k=1, always_keep=["bell"], order="score"),
        Selection(max_tokens=12),
    ):
        (record,) = scan_rows(tiny_scanner, [row], selection)
        passages = tiny_scanner.scan(row.query, row.document).selected(selection)
        assert [(each["start"], each["end"]) for each in record["sentences"]] == [
            (passage.start, passage.end) for passage in passages
        ]
        for passage, each in zip(passages, record["sentences"], strict=True):
            assert each["text"] == passage.text
            assert each["score"] == pytest.approx(1 / (1 + np.exp(-each["logit"])))


def test_a_selection_that_a_result_cannot_have_is_the_row_s_error(
    tiny_scanner: Scanner,
) -> None:
    (record,) = scan_rows(tiny_scanner, asked(pairs(1)), Selection(require_answer=0.5))
    assert record["error"] is not None
