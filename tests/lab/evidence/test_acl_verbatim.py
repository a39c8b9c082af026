"""The gold file of ACL-Verbatim, as its own loader reads it."""

import json
from pathlib import Path

import pytest

from spscanner_lab.evidence.acl_verbatim import read_acl_verbatim
from spscanner_lab.evidence.data_lines import DataError

CHUNK = "We  train a model.\nIt is small."


def written(folder: Path, *spans: str) -> Path:
    record = {
        "query": "Which model?",
        "results": [{"chunk": CHUNK, "gold_extraction": list(spans), "title": "A"}],
    }
    path = folder / "gold.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("It is small.", "It is small."),
        ("IT IS SMALL.", "It is small."),
        ("we train a model. it", "We  train a model.\nIt"),
    ],
)
def test_spans_are_found_by_their_text(
    tmp_path: Path, span: str, expected: str
) -> None:
    (document,) = read_acl_verbatim(written(tmp_path, span))
    (question,) = document.questions
    ((start, end),) = question.evidence
    assert document.text[start:end] == expected
    assert question.answerable


def test_a_chunk_without_a_span_does_not_answer(tmp_path: Path) -> None:
    for spans in ((), ("Nowhere.",)):
        (document,) = read_acl_verbatim(written(tmp_path, *spans))
        assert document.questions[0].evidence == ()
        assert not document.questions[0].answerable


def test_another_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"query": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.jsonl, line 1.*results"):
        read_acl_verbatim(path)
