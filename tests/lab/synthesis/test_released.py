"""Released training files: conversion there and back, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.synthesis.released import read_released, read_released_tests

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


RECORD = {
    "question": "Who?",
    "answer": ["the keeper"],
    "full_text_sentences": ["It rained. ", "He left."],
}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (
            {"qasper": {"1": RECORD, "2": RECORD}},
            [("qasper", "qasper/1"), ("qasper", "qasper/2")],
        ),
        (
            {"creative": {"narrative": {"1": RECORD}}, "law": {"cuad": {"1": RECORD}}},
            [("creative", "creative/narrative/1"), ("law", "law/cuad/1")],
        ),
        ({"qasper": [RECORD | {"answer_type": "paragraph"}]}, [("qasper", "qasper/0")]),
    ],
)
def test_a_test_file_becomes_lines_with_answers(
    content: object, names: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "mambaretriever_test.json"
    path.write_text(json.dumps(content))
    lines = list(read_released_tests(path))
    assert [(line["source"], line["doc_id"]) for line in lines] == names
    (tmp_path / "ours.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    for document in read_documents([tmp_path / "ours.jsonl"], distinct=True):
        (question,) = document.questions
        assert (document.text, question.answers) == (
            "It rained. He left.",
            ("the keeper",),
        )
        assert question.answer_form == ("paragraph" if "qasper/0" in names[0] else "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "got int at '0'; expected objects of benchmarks or categories"),
        (
            {"a": {"b": {"c": {"d": RECORD | {"full_text_sentences": None}}}}},
            "got dict at 'a/b/c'",
        ),
        (
            {"a": {"1": RECORD | {"question": 1}}},
            "record 'a/1': expected a question, .*, got 'question, ",
        ),
        (
            {"a": {"1": RECORD | {"full_text_sentences": "It rained."}}},
            "a list of strings",
        ),
        (
            {"a": {"1": {"full_text_sentences": [], "question": "Who?"}}},
            "expected a question, an answer",
        ),
    ],
)
def test_test_files_that_are_refused(
    content: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "test.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        list(read_released_tests(path))
