"""HotpotQA's files, as their makers publish them."""

import json
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.hotpotqa import read_hotpotqa

RECORD = {
    "_id": "5a7",
    "question": "Who built the ship?",
    "answer": "Ann",
    "context": [
        ["Tern", ["Tern floats.", " Ann built it. "]],
        ["Hull", ["A port."]],
    ],
    "supporting_facts": [["Tern", 1], ["Tern", 9], ["Gone", 0]],
}


def written(folder: Path, content: Any) -> Path:
    path = folder / "hotpot_dev_distractor_v1.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_supporting_facts_are_the_evidence(tmp_path: Path) -> None:
    (document,) = read_hotpotqa(written(tmp_path, [RECORD]))
    assert document.text == "Tern\nTern floats. Ann built it. \n\nHull\nA port."
    (question,) = document.questions
    ((start, end),) = question.evidence
    assert document.text[start:end] == "Ann built it."
    assert question.answers == ("Ann",)


@pytest.mark.parametrize("content", [{"a": 1}, [{"_id": "a"}], [3], "no"])
def test_another_file_is_named(tmp_path: Path, content: object) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError, match=r"distractor_v1\.json.*supporting_facts"):
        list(read_hotpotqa(path))
