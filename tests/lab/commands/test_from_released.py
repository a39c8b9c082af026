"""``spscanner from-released``: what is converted, and what is told about it."""

import json
from pathlib import Path
from typing import Any

from tests.command_line import Run, read_lines

RECORD: dict[str, Any] = {
    "question": "Who left?",
    "answer": ["the keeper"],
    "full_text_sentences": ["It rained. ", "The keeper left."],
}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_choices_and_questions_without_a_category_are_counted(
    run: Run, tmp_path: Path
) -> None:
    released = {"quality": {"1": RECORD}, "new": {"2": RECORD, "3": RECORD}}
    test = write(tmp_path / "test.json", released)
    categories = write(
        tmp_path / "categories.json", {"law": {"quality": {"1": RECORD}}}
    )
    out = tmp_path / "ours.jsonl"
    told = run("from-released", test, "--categories", categories, "--out", out)
    assert (told.code, told.err) == (0, "")
    assert "3 questions on 2 documents" in told.out
    assert "judged as multiple choice: quality (1)" in told.out
    assert 'in no category, so in "other": new (2)' in told.out
    assert [line["category"] for line in read_lines(out)] == ["law", "other"]


def test_bad_records_are_named_and_the_exit_code_says_so(
    run: Run, tmp_path: Path
) -> None:
    records = {str(number): RECORD | {"question": " "} for number in range(7)}
    test = write(tmp_path / "test.json", {"new": records | {"good": RECORD}})
    told = run("from-released", test, "--out", tmp_path / "ours.jsonl")
    assert told.code == 3
    assert "7 bad records left out" in told.out
    assert told.err.count("left out: ") == 5  # the first ones
    assert len(read_lines(tmp_path / "ours.jsonl")) == 1


def test_what_cannot_be_converted_leaves_no_file(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "ours.jsonl"
    training = tmp_path / "train.jsonl"
    training.write_text("{}\n")
    refused = run("from-released", training, "--out", out)
    refused.refuses("a training file, without --tokenizer; expected both")
    empty = write(tmp_path / "test.json", {})
    run("from-released", empty, "--out", out).refuses("no record; expected released")
    assert not out.exists()
