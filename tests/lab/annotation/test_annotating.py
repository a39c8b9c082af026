"""Annotation of files: what is written, and that the same call resumes."""

import json
from pathlib import Path

import pytest

from spscanner_lab.annotation.annotating import AnnotationModels, annotate
from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.synthesis.scripted import scripted_reply
from spscanner_rag.system.run_inputs import OtherRunError
from tests.command_line import write_lines

NAMES = ["Smith", "Keeper", "Harbour", "Lantern"]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    lines = []
    for number, name in enumerate(NAMES):
        text = f"It rained all morning. Captain {name} signed the treaty. He left."
        question = {"qid": "q", "question": "Who signed the treaty?", "answers": [name]}
        unanswered = {"qid": "u", "question": "Who signed?"}
        lines.append(
            {
                "doc_id": f"d{number}",
                "source": "logs",
                "text": text,
                "questions": [question, unanswered],
            }
        )
    return write_lines(tmp_path / "questions.jsonl", *lines)


def test_the_file_has_what_was_checked(questions: Path, tmp_path: Path) -> None:
    summary = annotate([questions], tmp_path / "out", AnnotationModels())
    assert (summary["documents"], summary["questions"]) == (4, 4)
    assert summary["dropped"] == {"the question has no answer": 4}
    assert summary["models"] == ["scripted"] * 3
    documents = list(read_documents([tmp_path / "out" / "test.jsonl"], distinct=True))
    assert [document.doc_id for document in documents] == ["d0", "d1", "d2", "d3"]
    for document, name in zip(documents, NAMES, strict=True):
        (question,) = document.questions
        (span,) = question.evidence
        assert document.text[slice(*span)] == f"Captain {name} signed the treaty."


def test_a_spent_budget_ends_the_run_and_a_larger_one_goes_on(
    questions: Path, tmp_path: Path
) -> None:
    calls: list[str] = []

    def ask(prompt: str) -> str:
        calls.append(prompt)
        return scripted_reply(prompt)

    models = AnnotationModels(LanguageModel("counted", ask))
    out = tmp_path / "out"
    summary = annotate([questions], out, models, budget=Budget(max_requests=4))
    assert "limit of 4 requests" in summary["stopped"]
    assert len(calls) == 4
    summary = annotate([questions], out, models)
    assert (summary["stopped"], summary["questions"]) == ("", 4)
    assert len(calls) == summary["requests"]
    again = annotate([questions], out, models)
    assert len(calls) == again["requests"] == summary["requests"]
    with pytest.raises(OtherRunError):
        annotate([questions], out, AnnotationModels())


def test_a_bad_line_is_reported_before_any_request(
    questions: Path, tmp_path: Path
) -> None:
    calls: list[str] = []
    models = AnnotationModels(LanguageModel("counted", calls.append))
    with questions.open("a") as file:
        file.write("{broken\n")
    with pytest.raises(DataError, match="line 5"):
        annotate([questions], tmp_path / "out", models)
    assert calls == []


def test_prompts_of_a_folder(questions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "label_sentences.txt").write_text("version: mine\n\nMark.\n===\nNow.")
    annotate([questions], tmp_path / "out", AnnotationModels(), prompts=folder)
    replies = (tmp_path / "out" / "replies.jsonl").read_text().splitlines()
    assert any(json.loads(line)["prompt"].startswith("Mark.") for line in replies)
