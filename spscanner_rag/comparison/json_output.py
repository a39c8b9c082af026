"""The comparison as JSON."""

import json
from collections.abc import Sequence

from spscanner_rag.comparison.comparison import Comparison, Retrieval
from spscanner_rag.files.documents import TextFile


def render_json(comparisons: Sequence[Comparison]) -> str:
    """Return comparisons of the same retrievers as JSON."""
    content = {
        "query": comparisons[0].query,
        "counted_by": comparisons[0].counted_by,
        "documents": [_describe(comparison) for comparison in comparisons],
    }
    # ASCII only: no character of a document can act on a terminal, and any output can hold it.
    return json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _describe(comparison: Comparison) -> dict[str, object]:
    document = TextFile(comparison.path, comparison.text)
    return {
        "path": comparison.path,
        "characters": len(comparison.text),
        "evidence": comparison.evidence,
        "evidence_sentences": [_place(document, *span) for span in comparison.evidence_sentences],
        "retrievers": [_describe_retrieval(document, retrieval) for retrieval in comparison.retrievals],
    }


def _describe_retrieval(document: TextFile, retrieval: Retrieval) -> dict[str, object]:
    return {
        "name": retrieval.name,
        "units": retrieval.units,
        "seconds": retrieval.seconds,
        "tokens": retrieval.tokens,
        "only": retrieval.only,
        "found": retrieval.found,
        "picks": [
            {"rank": pick.rank, "score": pick.score, "tokens": pick.tokens, "only": pick.only}
            | _place(document, pick.start, pick.end)
            for pick in retrieval.picks
        ],
    }


def _place(document: TextFile, start: int, end: int) -> dict[str, object]:
    line, column = document.position(start)
    return {"start": start, "end": end, "line": line, "column": column, "text": document.text[start:end]}
