"""Scans rows in shared forward passes, and makes a record of each."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from spscanner_rag import Passage
from spscanner_rag.apps.batch.rows import Row
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.surrogates import replace_surrogates

COLUMNS = "id query_id document_score sentence_count tokens sentences error".split()

Record = dict[str, Any]
"""One line of a part."""

_LONGEST_ERROR = 500


def scan_rows(
    scanner: Scanner, rows: Sequence[Row], selection: Selection, texts: bool = True
) -> list[Record]:
    """Scan rows in shared forward passes, and return a record for each.

    If the passes fail, for example for lack of memory, each row is scanned alone, and a
    failing one gets an error.

    Parameters
    ----------
    scanner : Scanner
    rows : sequence of Row
    selection : Selection
    texts : bool
        Whether records have the texts of sentences as well as their spans.
    """
    requests_or_errors = [_request(scanner, row) for row in rows]
    requests = [item for item in requests_or_errors if isinstance(item, ScanRequest)]
    results = iter(_scan_together(scanner, requests))
    records: list[Record] = []
    for row, item in zip(rows, requests_or_errors, strict=True):
        result = item if isinstance(item, str) else next(results)
        records.append(_record(row, result, selection, texts))
    return records


def _request(scanner: Scanner, row: Row) -> ScanRequest | str:
    """Return what to scan, or why the row cannot be scanned."""
    if row.error:
        return row.error
    try:
        return scanner.pipeline.request_of((row.query, row.document))
    except (ValueError, TypeError) as error:
        return str(error)


def _scan_together(
    scanner: Scanner, requests: Sequence[ScanRequest]
) -> list[ScanResult | str]:
    with suppress(Exception):
        return list(scanner.scan_many(requests))
    # Outside the handler, because the error keeps the memory of the failed passes.
    return [_scan_alone(scanner, request) for request in requests]


def _scan_alone(scanner: Scanner, request: ScanRequest) -> ScanResult | str:
    try:
        return scanner.scan_many([request])[0]
    except Exception as error:  # any error: the other rows are still scanned
        return f"{type(error).__name__}: {error}".strip().removesuffix(":")


def _record(
    row: Row, result: ScanResult | str, selection: Selection, texts: bool
) -> Record:
    record: Record = dict.fromkeys(COLUMNS)
    record["id"] = replace_surrogates(row.id)
    record["query_id"] = row.query_id and replace_surrogates(row.query_id)
    record["sentences"] = []
    if isinstance(result, ScanResult):
        try:
            for passage in result.selected(selection):
                record["sentences"].append(_passage(row, result, passage, texts))
        except ValueError as error:  # for example, no probability of an answer
            result = str(error)
    if isinstance(result, str):
        record["error"] = replace_surrogates(result)[:_LONGEST_ERROR]
        return record
    if len(result.logits):
        record["document_score"] = result.document_score()
    record["sentence_count"] = len(result.logits)
    record["tokens"] = result.n_tokens
    return record


def _passage(row: Row, result: ScanResult, passage: Passage, texts: bool) -> Record:
    """Return a sentence, or several merged ones with the logit of the best."""
    first, stop = np.searchsorted(result.starts, [passage.start, passage.end])
    section = None
    if isinstance(row.document, TextFile):
        section = replace_surrogates(row.document.section(passage.start))
    return {
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
        "logit": float(result.logits[first:stop].max()),
        "text": replace_surrogates(passage.text) if texts else None,
        "section": section,
    }
