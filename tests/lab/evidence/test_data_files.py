"""Which files are whose."""

import json
from pathlib import Path

import pytest

from spscanner_lab.evidence.data_files import read_data_files
from spscanner_lab.evidence.data_lines import DataError
from tests.lab.evidence.test_hotpotqa import RECORD

OURS = {
    "doc_id": "a", "source": "ours", "split": "dev", "title": "", "text": "It rained.",
    "questions": [],
}  # fmt: skip
ACL = {"query": "Which model?", "results": [{"chunk": "A.", "gold_extraction": []}]}


def test_files_are_told_apart_by_their_content(tmp_path: Path) -> None:
    paths = []
    for name, content in (("a.jsonl", OURS), ("b.jsonl", ACL), ("c.json", [RECORD])):
        path = tmp_path / name
        path.write_text(json.dumps(content) + "\n", encoding="utf-8")
        paths.append(path)
    sources = [document.source for document in read_data_files(paths)]
    assert sources == ["acl_verbatim", "hotpotqa", "ours"]


@pytest.mark.parametrize("content", ["", "no\n", "3\n"])
def test_bad_lines_are_told_as_those_of_question_files(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8")
    errors: list[DataError] = []
    assert not list(read_data_files([path], errors.append))
    assert len(errors) == bool(content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl: no such file"):
        list(read_data_files([tmp_path / "gone.jsonl"]))
