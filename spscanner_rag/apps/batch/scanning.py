"""Scans rows into records: sentences above a rank or threshold, the document's score, or the row's error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spscanner_rag.apps.batch.rows import Row
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult
from spscanner_rag.results.document_score import Aggregation
from spscanner_rag.results.selection import Selection as SentenceSelection
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.units import readable

Record = dict[str, Any]
"""One line of a part; `parts.schema` lists its columns."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is kept of each document."""

    top_k: float | str | None = 10
    threshold: float | None = None
    aggregation: Aggregation = "max"
    texts: bool = True


def scan_rows(scanner: Scanner, rows: Sequence[Row], selection: Selection) -> list[Record]:
    """A record for each row. Every pair is read on its own, as by ``scanner.scan``.

    Rows share forward passes. If these fail, for example for want of memory, each row is scanned alone, and what
    fails then gets an error.
    """
    errors = [row.error or _fault_of(scanner, row) for row in rows]
    pairs = [(row.query, row.document) for row, error in zip(rows, errors, strict=True) if error is None]
    results: list[ScanResult | str]
    try:
        results = list(scanner.scan_many(pairs))
    except Exception:
        results = [_alone(scanner, pair) for pair in pairs]
    left = iter(results)
    return [
        _record(row, next(left) if error is None else error, selection)
        for row, error in zip(rows, errors, strict=True)
    ]


def _fault_of(scanner: Scanner, row: Row) -> str | None:
    try:
        scanner.pipeline.request_of((row.query, row.document))
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _alone(scanner: Scanner, pair: tuple[str, str | TextFile]) -> ScanResult | str:
    try:
        return scanner.scan(*pair)
    except Exception as error:  # whatever it is, the other rows go on
        told = str(error).strip()
        return f"{type(error).__name__}: {told}" if told else type(error).__name__


def _record(row: Row, result: ScanResult | str, selection: Selection) -> Record:
    own: Record = {
        "id": readable(row.id),
        "query_id": None if row.query_id is None else readable(row.query_id),
        "document_score": None,
        "sentence_count": None,
        "tokens": None,
        "sentences": [],
        "error": None,
    }
    if isinstance(result, str):
        return own | {"error": readable(result)[:500]}
    picks = result.picks(SentenceSelection(top_k=selection.top_k, threshold=selection.threshold)).tolist()
    section = row.document.section if isinstance(row.document, TextFile) else None
    sentences = []
    for number in picks:
        start, end = int(result.starts[number]), int(result.ends[number])
        sentences.append(
            {
                "start": start,
                "end": end,
                "score": float(result.scores[number]),
                "logit": float(result.logits[number]),
                "text": readable(result.text[start:end]) if selection.texts else None,
                "section": readable(section(start)) if section else None,
            }
        )
    has_score = len(result.logits) > 0
    return own | {
        "document_score": result.document_score(selection.aggregation) if has_score else None,
        "sentence_count": len(result.logits),
        "tokens": result.tokens_read,
        "sentences": sentences,
    }
