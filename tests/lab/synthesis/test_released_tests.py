"""Released test files: conversion, benchmarks, categories, and damage."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence import json_stream
from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.synthesis import released_tests
from spscanner_lab.synthesis.released_tests import (
    MULTIPLE_CHOICE,
    read_categories,
    read_released_tests,
)

RECORD: dict[str, Any] = {
    "question": "Who?",
    "answer": ["the keeper"],
    "full_text_sentences": ["It rained. ", "He left."],
}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (
            {"qasper": {"1": RECORD, "2": RECORD | {"full_text_sentences": ["No."]}}},
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
        assert document.text in ("It rained. He left.", "No.")
        assert question.answers == ("the keeper",)
        assert question.answer_form == ("paragraph" if "qasper/0" in names[0] else "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "got a plain value at '0'; expected objects of benchmarks or categories"),
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
        ({"a": {"1": RECORD | {"answer_type": "poem"}}}, "an answer_type of phrase"),
        ({"a": {"1": RECORD | {"answer": [["the keeper"]]}}}, "in words or numbers"),
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


def write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_questions_on_one_text_are_on_one_line(tmp_path: Path) -> None:
    """Of one benchmark, so that intervals cluster; tokens are those of the file."""
    same = RECORD | {"input_ids": [5, 6, 7], "sentence_indices": [1, 2]}
    other = same | {"full_text_sentences": ["It snowed."]}
    content = {"b": {"1": same, "2": other, "3": same}, "c": {"4": same}}
    lines = list(read_released_tests(write_json(tmp_path / "test.json", content)))
    qids = [[question["qid"] for question in line["questions"]] for line in lines]
    assert qids == [["b/1", "b/3"], ["b/2"], ["c/4"]]
    assert [line["doc_id"] for line in lines] == ["b/1", "b/2", "c/4"]
    assert {line["tokens"] for line in lines} == {3}
    assert lines[0]["text"] == lines[2]["text"] == "It rained. He left."


@pytest.mark.parametrize("name", sorted(MULTIPLE_CHOICE))
def test_benchmarks_of_multiple_choice_are_known_by_name(
    name: str, tmp_path: Path
) -> None:
    path = write_json(tmp_path / "test.json", {name: {"1": RECORD}, "free": [RECORD]})
    choice, free = read_released_tests(path)
    assert choice["questions"][0]["multiple_choice"] is True
    assert "multiple_choice" not in free["questions"][0]


@pytest.mark.parametrize(
    "categories",
    [{"law": {"1": RECORD}}, {"law": {"cuad": {"1": RECORD}}}],
    ids=["of records", "of benchmarks and records"],
)
def test_categories_come_from_the_file_of_categories(
    categories: object, tmp_path: Path
) -> None:
    path = write_json(
        tmp_path / "test.json", {"cuad": {"1": RECORD}, "new": {"2": RECORD}}
    )
    names = read_categories(write_json(tmp_path / "categories.json", categories))
    lines = read_released_tests(path, names)
    assert [line["category"] for line in lines] == ["law", "other"]


def test_bad_records_are_named_and_the_others_converted(tmp_path: Path) -> None:
    content = {
        "a": {
            "1": RECORD,
            "2": {"question": "Who?", "answer": ["x"]},
            "3": RECORD | {"full_text_sentences": {"0": "It rained."}},
            "4": "of another version",
            "5": RECORD | {"question": " "},
        },
        "b": {"6": RECORD},
    }
    errors: list[DataError] = []
    path = write_json(tmp_path / "test.json", content)
    lines = list(read_released_tests(path, on_bad=errors.append))
    assert [line["doc_id"] for line in lines] == ["a/1", "b/6"]
    assert [f"'a/{number}'" in str(errors[number - 2]) for number in range(2, 6)] == (
        [True] * 4
    )
    assert len(errors) == 4


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.95])
def test_a_file_that_is_cut_is_read_up_to_there(tmp_path: Path, share: float) -> None:
    records = {str(number): RECORD for number in range(10)}
    whole = json.dumps({"a": records})
    path = tmp_path / "test.json"
    path.write_text(whole[: int(share * len(whole))])
    errors: list[DataError] = []
    (line,) = read_released_tests(path, on_bad=errors.append)
    done = len(line["questions"])
    assert 0 < done < 10
    (error,) = errors
    assert f"cut or damaged at record 'a/{done}'" in str(error)
    with pytest.raises(DataError, match="cut or damaged"):
        list(read_released_tests(path))


def test_a_name_twice_is_refused_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    record = json.dumps(RECORD)
    path.write_text(f'{{"a": {{"1": {record}, "1": {record}}}}}')
    with pytest.raises(DataError, match="each name once"):
        list(read_released_tests(path))
    path.write_bytes(b'{"a": {"1": "\xff')
    with pytest.raises(DataError, match="cut or damaged"):
        list(read_released_tests(path))


def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are not decoded, and one text is in memory at a time."""
    monkeypatch.setattr(json_stream, "PIECE", 1 << 14)
    path = tmp_path / "test.json"
    with path.open("w") as file:
        file.write('{"long": {')
        for number in range(20):
            sentences = [f"Sentence {n} of text {number}. " for n in range(500)]
            record = RECORD | {"full_text_sentences": sentences}
            record["input_ids"] = list(range(10**8, 10**8 + 10_000))
            file.write(f'{"," if number else ""}"{number}": {json.dumps(record)}')
        file.write("}}")
    tracemalloc.start()
    count = sum(1 for _ in read_released_tests(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20
    assert peak < path.stat().st_size / 5


def test_what_is_too_long_is_left_out_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released_tests, "MOST_CHARACTERS", 30)
    records = {
        "good": RECORD,
        "document": RECORD | {"full_text_sentences": ["It rained. "] * 4},
        "sentences": RECORD | {"full_text_sentences": ["It rained.", 5, "He left."]},
        "unknown": {"note": "x" * 50} | RECORD,
    }
    errors: list[DataError] = []
    path = write_json(tmp_path / "test.json", {"a": records})
    (line,) = read_released_tests(path, on_bad=errors.append)
    assert [question["qid"] for question in line["questions"]] == [
        "a/good",
        "a/unknown",
    ]
    for name, error in zip(("document", "sentences"), errors, strict=True):
        assert f"'a/{name}'" in str(error)


def test_more_after_the_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    path.write_text(json.dumps({"a": {"1": RECORD}}) + " {}")
    with pytest.raises(DataError, match="more after the end"):
        list(read_released_tests(path))
