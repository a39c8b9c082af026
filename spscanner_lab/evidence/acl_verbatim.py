"""The gold file of ACL-Verbatim: queries on retrieved chunks, with gold spans.

See github.com/KRLabsOrg/acl-verbatim, Apache-2.0. Its measure is precision, recall and
F1 of words, over all pairs of query and chunk; 53 of the 100 chunks have no span.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.data_lines import expecting, numbered_lines
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.system.strict_json import parse_object

SOURCE = "acl_verbatim"


def is_acl_verbatim(path: Path) -> bool:
    """Whether the first line of a file is a query with results."""
    try:
        for _, line in numbered_lines(path):
            return {"query", "results"} <= parse_object(line).keys()
    except ValueError:  # no such line: others say what is wrong with it
        return False
    return False


def read_acl_verbatim(path: Path) -> list[Document]:
    """Read the pairs of query and chunk, each as a document with one question.

    A chunk without a gold span does not answer. A span is found by its text, as the
    benchmark does: exactly, else without regard to case and white space; one that is
    nowhere is left out.

    Raises
    ------
    DataError
        For a line that is no record of this file.
    """
    documents: list[Document] = []
    for number, line in numbered_lines(path):
        location = f"{path}, line {number}"
        with expecting(
            "a query with results, each with chunk and gold_extraction", location
        ):
            record = parse_object(line)
            for rank, result in enumerate(record["results"]):
                qid = f"line-{number}-{rank}"
                documents.append(_document(record["query"], result, qid))
    return documents


def _document(query: str, result: Mapping[str, Any], qid: str) -> Document:
    chunk = result["chunk"]
    evidence: list[tuple[int, int]] = []
    for quotation in result["gold_extraction"]:
        span = _span_of(quotation, chunk)
        if span is not None:
            evidence.append(span)
    question = Question(qid, query, tuple(evidence), answerable=bool(evidence))
    return Document(qid, SOURCE, str(result.get("title", "")), chunk, (question,))


def _span_of(quotation: str, chunk: str) -> tuple[int, int] | None:
    start = chunk.find(quotation)
    if start >= 0:
        return start, start + len(quotation)
    words = map(re.escape, quotation.split())
    match = re.search(r"\s+".join(words), chunk, re.IGNORECASE)
    return match.span() if match else None
