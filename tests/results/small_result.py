"""A result of three sentences, with changes."""

from typing import Any

from spscanner_rag import ScanResult

TEXT = "Anne signed it.  The captain left.\n\nNobody answered!"


STARTS, ENDS = [0, 17, 36], [15, 34, 52]


def make(**changes: Any) -> ScanResult:
    fields = {
        "query": "Who?",
        "text": TEXT,
        "starts": STARTS,
        "ends": ENDS,
        "logits": [2.0, -1.5, 0.0],
    }
    return ScanResult(**(fields | changes))
