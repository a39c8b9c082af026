"""Released training files: conversion there and back, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.synthesis.released import read_released

QUESTION = {
    "qid": "released-0-0",
    "question": "When did it come back?",
    "evidence": [[17, 35]],
    "answerable": True,
}
TEXT = "The ship sailed. It came back late. Nobody knew why."
LINE: dict[str, Any] = {
    "doc_id": "released-0",
    "source": "released",
    "split": "train",
    "title": "",
}
LINE |= {"text": TEXT, "questions": [QUESTION]}
UNITS = [(0, 17), (17, 36), (36, 52)]


def record_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The record of `LINE`."""
    return {
        "input_ids": tokenizer.encode(f"{QUESTION['question']}\n{TEXT}").ids,
        "full_text_sentences": [TEXT[start:end] for start, end in UNITS],
        "sentence_indices": [0, 1, 2],
        "sentence_labels": [0, 1, 0],
    }


def test_a_record_becomes_a_line(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "released.jsonl"
    path.write_text(json.dumps(record_of(tiny_tokenizer)) + "\n\n")
    found = json.loads(json.dumps(list(read_released([path], tiny_tokenizer))))
    assert found == [LINE]
    (tmp_path / "ours.jsonl").write_text(json.dumps(LINE) + "\n")
    (document,) = read_documents([tmp_path / "ours.jsonl"])
    assert (
        document.text[slice(*document.questions[0].evidence[0])] == "It came back late."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence_labels": None}, "line 1: expected a list under 'sentence_labels'"),
        (
            {"sentence_labels": [0, 1]},
            r"as many sentences as labels and indices, got \[3, 2, 3\]",
        ),
        ({"full_text_sentences": [1, 2, 3]}, "expected token ids and strings"),
        ({"input_ids": [-1]}, "expected token ids and strings"),
        (
            {"full_text_sentences": ["Some", "other", "text"]},
            "give the tokenizer that made the file",
        ),
        ({"input_ids": "the text alone"}, "expected a question before the sentences"),
    ],
)
def test_records_that_are_refused(
    tiny_tokenizer: Tokenizer, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    record = record_of(tiny_tokenizer) | change
    if record["input_ids"] == "the text alone":
        record["input_ids"] = tiny_tokenizer.encode(TEXT).ids
    path = tmp_path / "released.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match=message):
        list(read_released([path], tiny_tokenizer))


def test_bad_records_are_named_and_the_others_converted(
    tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    good = json.dumps(record_of(tiny_tokenizer))
    without = json.dumps({"input_ids": [1]})
    path = tmp_path / "released.jsonl"
    path.write_text(f"{good}\n{without}\n{good}\n{good[:50]}")
    errors: list[DataError] = []
    lines = list(read_released([path], tiny_tokenizer, errors.append))
    assert [line["doc_id"] for line in lines] == ["released-0", "released-1"]
    places = [str(error).partition(":")[0] for error in errors]
    assert places == [f"{path}, line 2", f"{path}, line 4"]
