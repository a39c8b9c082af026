"""`spscanner annotate`: its output goes to `spscanner eval`, and exit codes."""

import json
from pathlib import Path

import pytest

from tests.command_line import Run, write_lines


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    question = {"qid": "q", "question": "Who signed the treaty?", "answers": ["Smith"]}
    document = {
        "doc_id": "d",
        "source": "logs",
        "text": "It rained all morning. Captain Smith signed the treaty. He left.",
        "questions": [question],
    }
    return write_lines(tmp_path / "questions.jsonl", document)


def test_labels_are_evaluated(run: Run, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    annotated = run("annotate", questions, "--out", out, "--no-progress")
    assert annotated.code == 0, annotated.err
    assert "1 of 1 questions labelled; 3 requests" in annotated.out
    assert "these labels are from the scripted stand-in" in annotated.out
    evaluated = run(
        "eval", out / "test.jsonl", "--retrievers", "bm25", "--out", tmp_path / "eval"
    )
    assert evaluated.code == 0, evaluated.err
    rows = json.loads((tmp_path / "eval" / "results.json").read_text())
    (recall,) = [
        row["value"]
        for row in rows
        if (row["metric"], row["k"], row["source"]) == ("recall", 1, "logs")
    ]
    assert recall == 1


def test_a_model_of_a_file_and_exit_codes(
    run: Run, questions: Path, tmp_path: Path
) -> None:
    model = tmp_path / "mine.py"
    model.write_text("def ask(prompt):\n    return 'RELEVANT: NO\\nINDICES: NONE'\n")
    useless = run(
        "annotate", questions, "--out", tmp_path / "none", "--llm", f"{model}:ask"
    )
    assert useless.code == 1
    assert "dropped: no sentence is needed (1)" in useless.out
    refused = run("annotate", questions, "--out", tmp_path / "other", "--llm", "nobody")
    assert refused.code == 2
    early = run(
        "annotate", questions, "--out", tmp_path / "early", "--max-requests", "1"
    )
    assert early.code == 1
    assert "ended early: the limit of 1 requests is reached" in early.out
