import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parent.parent / "examples" / "data"


@pytest.fixture(scope="module")
def novel() -> str:
    return (DATA / "persuasion.txt").read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


@pytest.fixture(scope="module")
def pages() -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (DATA / "saltmere.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_the_readme_describes_the_novel_and_its_questions(
    novel: str, document: dict[str, Any]
) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert document["text"] == novel
    assert f"{len(novel):,} characters" in readme
    assert hashlib.sha256(novel.encode("utf-8")).hexdigest() in readme
    rows = [
        line.split(" | ")[:2]
        for line in readme.splitlines()
        if line.startswith("| persuasion-")
    ]
    assert rows == [
        [f"| {question['qid']}", question["question"]]
        for question in document["questions"]
    ]


def test_the_readme_describes_the_collection(pages: list[dict[str, Any]]) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    questions = [
        question["question"] for page in pages for question in page["questions"]
    ]
    assert (
        f"{len(pages)} pages ({sum(len(page['text']) for page in pages):,} characters)"
        in readme
    )
    assert f"{len(questions)} questions" in readme
    assert len(set(questions)) == len(questions)
    assert len({page["doc_id"] for page in pages}) == len(pages)


def test_evidence_is_whole_sentences(
    document: dict[str, Any], pages: list[dict[str, Any]]
) -> None:
    """Evidence is far from the novel's start, and names no page of the collection."""
    for page in (document, *pages):
        text, name = page["text"], page["title"].split(",")[0].split()[-1]
        assert page is document or text.startswith(page["title"] + "\n\n")
        assert {"license", "source", "split"} < set(page)
        for question in page["questions"]:
            assert question["evidence"]
            for start, end in question["evidence"]:
                assert text[start].isupper()
                assert text[start - 1].isspace() or text[start - 1] == '"'
                assert text[end - 1] in ".!"
                assert text[end].isspace() or text[end] == '"'
                assert (
                    start > 40_000 if page is document else name not in text[start:end]
                )


def test_an_answer_stands_in_or_shortly_before_its_evidence(
    document: dict[str, Any],
) -> None:
    for question in document["questions"]:
        stretches = (
            document["text"][start - 900 : end] for start, end in question["evidence"]
        )
        around = " ".join(" ".join(stretches).split())
        assert any(answer in around for answer in question["answers"]), question["qid"]
