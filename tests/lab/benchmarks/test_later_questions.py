"""Later questions on a prepared text: rows for every share that is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.benchmarks import later_questions
from spscanner_lab.benchmarks.__main__ import main

TEXT = "The keeper left. Ann signed the lease. It rained all night. " * 4


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_checkpoint: Path) -> Any:
    """Asks the tiny scanner; without the model of the vector store."""
    monkeypatch.setattr(
        later_questions, "_vector_store", lambda sentences: lambda question: sentences
    )
    text = tmp_path / "text.txt"
    text.write_text(TEXT)

    def run(*options: object) -> dict[str, Any]:
        out = tmp_path / "report.json"
        fixed = ["--text", text, "--model", tiny_checkpoint, "--repeats", 1]
        words = ["later-questions", *fixed, *options, "--out", out]
        monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
        assert main() == 0
        return dict(json.loads(out.read_text(encoding="utf-8"))["results"])

    return run


def test_seconds_are_told_beside_those_of_reading_all(run: Any) -> None:
    rows = run("--read", "all", "auto")
    assert rows["text"]["tokens"] > 40
    everything = rows["read=all"]
    assert everything["times faster than all"] == 1
    share = rows["read=auto"]
    assert share["times faster than all"] == pytest.approx(
        everything["CPU s"] / share["CPU s"]
    )
    assert later_questions.VECTORS in rows


def test_recalls_are_compared_with_reading_all(run: Any, tmp_path: Path) -> None:
    documents = []
    for number in range(3):
        begin = TEXT.index("Ann")
        questions = [
            {
                "qid": "a",
                "question": "Who signed the lease?",
                "answers": ["Ann"],
                "evidence": [[begin, begin + 21]],
            },
            {"qid": "b", "question": "Who sang?", "answers": [], "evidence": []},
        ]
        row = {"doc_id": f"d{number}", "source": "leases", "title": "", "text": TEXT}
        documents.append(json.dumps(row | {"questions": questions}))
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(f"{line}\n" for line in documents))
    rows = run("--read", "all", "1", "--data", data)
    for measure in later_questions.MEASURES:
        row = rows[f"{measure}, read=1.0"]
        assert row["macro mean"] == rows[f"{measure}, read=all"]["macro mean"] > 0
        assert (row["difference"], row["p"]) == (0, 1)
