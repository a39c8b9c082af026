"""What the metadata of a LangChain document say: offsets, scores, pages, its group."""

import math
from numbers import Real

from langchain_core.documents import Document

from langchain_spscanner._canonical import canonical
from spscanner_rag.retrieval import SCORE_KEYS

SCORE_KEY = "relevance_score"
ALL_SCORE_KEYS = frozenset((SCORE_KEY, *SCORE_KEYS))
"""Metadata keys whose values depend on the query."""

EARLIER_SCORE_KEYS = (SCORE_KEY, "score")
"""May have the score of an earlier stage; the first one present counts."""

PAGE_KEYS = ("page", "page_number", "page_label")
UNKNOWN_OFFSET = -1
"""What LangChain's splitters write for an offset that they cannot find."""


def start_of(document: Document) -> int | None:
    """Offset of a chunk in the document it was cut from, below 0 if unknown.

    None for a whole document.
    """
    start = _number(document.metadata.get("start_index"))
    if start is None or start != int(start):
        return None
    return int(start)


def retrieval_score_of(document: Document) -> float | None:
    """The score of an earlier stage, if any."""
    for key in EARLIER_SCORE_KEYS:
        score = _number(document.metadata.get(key))
        if score is not None:
            return score
    return None


def _number(value: object) -> float | None:
    """A finite number as a float, because some stores keep every number as one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value) if math.isfinite(value) else None


def group_of(document: Document, document_key: str | None) -> str | None:
    """A string that is equal for documents with equal metadata under the key.

    None without a value.
    """
    if document_key is None:
        return None
    value = document.metadata.get(document_key)
    return None if value is None else canonical(value)
