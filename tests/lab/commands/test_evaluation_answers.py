"""`spscanner eval --answers`: answers that are judged and counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Run, read_lines, write_lines

SCRIPT = '''
import re
from pathlib import Path

ASKED = Path(__file__).with_suffix(".asked")


def reply(prompt: str) -> str:
    """Finds where the keys hang in what it is shown; judges by comparing two lines."""
    with ASKED.open("a") as file:
        file.write(".")
    if "[BEGIN CANDIDATE ANSWER" in prompt:
        right, own = (
            prompt.rpartition(f"[BEGIN {kind} ANSWER")[2].splitlines()[1]
            for kind in ("REFERENCE", "CANDIDATE")
        )
        return f"REASON: compared.\\nDECISION: {'YES' if right in own else 'NO'}"
    found = re.findall(r"(?:ANSWER: |keys hang in the )(?!not in)(\\w+)", prompt)
    return f"REASON: read.\\nANSWER: {found[0] if found else 'not in this part'}"
'''

PLACES = ("pantry", "stable", "attic", "loft")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four documents whose last sentence answers, and is found by BM25.

    One question has no right answer.
    """
    lines = []
    for number, place in enumerate(PLACES):
        filler = " ".join(
            f"Sentence {n} of house {number} tells of the weather and the garden."
            for n in range(80)
        )
        text = f"{filler} The cellar keys hang in the {place}."
        questions = [
            {"qid": f"q{number}", "question": "Where do the cellar keys hang?",
             "evidence": [[len(filler) + 1, len(text)]], "answers": [place]},
        ]  # fmt: skip
        if not number:
            questions.append(
                {"qid": "none", "question": "Which garden?", "evidence": [[0, 10]]}
            )
        source = "houses" if number < 2 else "barns"
        lines.append(
            {
                "doc_id": f"d{number}",
                "source": source,
                "text": text,
                "questions": questions,
            }
        )
    return write_lines(tmp_path / "data.jsonl", *lines)


def asked(script: Path) -> int:
    path = script.with_suffix(".asked")
    return len(path.read_text()) if path.exists() else 0


def rows_of(out: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Rows by the retriever's label, source and metric."""
    units = {"sentence": "bm25", "chunk": "bm25, chunks", "": "whole document"}
    rows = json.loads((out / "answers.json").read_text())["rows"]
    return {(units[row["unit"]], row["source"], row["metric"]): row for row in rows}


def test_retrieved_and_direct_answers(
    run: Run, data: Path, script: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = (
        "eval", data, "--retrievers", "bm25", "--unit", "sentence,chunk", "--out", out,
        "--answers", f"{script}:reply", "--judge", f"{script}:reply",
        "--direct-answers", "--direct-window", 600, "--answer-form", "phrase",
    )  # fmt: skip
    told = run(*command)
    assert told.code == 0, told.err
    rows = rows_of(out)
    labels = ("bm25", "bm25, chunks", "whole document")
    assert {label for label, *_ in rows} == set(labels)
    for label in labels:
        for source, questions in (
            ("houses", 2),
            ("barns", 2),
            ("macro", 4),
            ("micro", 4),
        ):
            for score in ("accuracy", "token_f1", "exact_match"):
                assert rows[label, source, score]["value"] == 1.0
                assert rows[label, source, score]["questions"] == questions
    content = json.loads((out / "answers.json").read_text())
    answering = {each["answers_from"]: each["answering"] for each in content["asked"]}
    assert answering["bm25"]["prompts"] == 4
    direct = answering["whole document"]
    windows = (
        direct["prompts"] - 4
    )  # one more prompt combines the answers to the windows of each document
    assert windows >= 4 * 3
    assert direct["prompt_tokens"] > answering["bm25"]["prompt_tokens"]
    replies = read_lines(out / "answer-replies.jsonl")
    assert sum("in overlapping parts" in line["prompt"] for line in replies) == 4
    assert (
        sum("neighbouring parts overlap" in line["prompt"] for line in replies)
        == windows
    )
    assert content["spent"]["requests"] == len(replies) == asked(script)
    answers = read_lines(out / "answers.jsonl")
    assert len(answers) == 12
    assert {
        (line["answers_from"], line["doc_id"], line["answer"]) for line in answers
    } == {
        (label, f"d{number}", place)
        for label in labels
        for number, place in enumerate(PLACES)
    }
    assert all(
        line["correct"] is True and line["judged"][0]["text"] for line in answers
    )
    assert "whole document" in told.out
    assert "whole document" in (out / "results.md").read_text()
    assert "whole document" in (out / "results.html").read_text()
    count, before = asked(script), (out / "answers.json").read_bytes()
    assert run(*command).code == 0
    assert asked(script) == count, "every reply was kept"
    assert (out / "answers.json").read_bytes() == before


def test_the_paper_s_experiment_on_its_test_file(
    run: Run, data: Path, script: Path, tmp_path: Path
) -> None:
    """Benchmarks with right answers but no evidence, from file to rows."""
    released: dict[str, Any] = {}
    for number, line in enumerate(read_lines(data)):
        sentences = [f"{part}. " for part in line["text"].split(". ")] * (
            1 + 9 * (number % 2)
        )
        question = line["questions"][0]["question"]
        record = {
            "question": question,
            "answer": line["questions"][0]["answers"],
            "input_ids": [1, 2],
            "full_text_sentences": sentences,
            "sentence_indices": [1] * len(sentences),
            "answer_type": "sentence" if number < 2 else "paragraph",
        }
        released.setdefault(line["source"], {})[str(("b", number))] = record
    (tmp_path / "mambaretriever_test.json").write_text(json.dumps(released))
    made, out = tmp_path / "test.jsonl", tmp_path / "out"
    told = run("from-released", tmp_path / "mambaretriever_test.json", "--out", made)
    assert told.code == 0, told.err
    assert all("evidence" not in line["questions"][0] for line in read_lines(made))
    command = (
        "eval",
        made,
        "--retrievers",
        "bm25",
        "--out",
        out,
        "--answers",
        f"{script}:reply",
    )
    assert run(*command[:-2], "--max-questions", 1).code == 2, (
        "without --answers there is nothing to measure"
    )
    told = run(*command, "--judge", f"{script}:reply", "--answer-units", 1)
    assert told.code == 0, told.err
    rows = rows_of(out)
    assert {source for _, source, _ in rows} == {"houses", "barns", "macro", "micro"}
    assert (
        rows["bm25", "macro", "accuracy"]["value"]
        == rows["bm25", "houses", "token_f1"]["value"]
        == 1.0
    )
    by_length = [
        (row["k"], row["questions"])
        for row in json.loads((out / "answers.json").read_text())["rows"]
        if (row["metric"], row["source"]) == ("accuracy_by_length", "macro")
    ]
    assert by_length == [(0, 2), (8_000, 2)]
    asked = [
        line["prompt"]
        for line in read_lines(out / "answer-replies.jsonl")
        if "CANDIDATE" not in line["prompt"]
    ]
    assert [
        sum(form in prompt for prompt in asked)
        for form in ("short sentence", "short paragraph")
    ] == [
        2,
        2,
    ]
    assert all(prompt.count("keys hang in the") == 1 for prompt in asked), (
        "one unit alone"
    )
    assert "Answers by length" in (out / "results.md").read_text()
    count = (out / "answer-replies.jsonl").read_bytes()
    assert run(*command, "--judge", f"{script}:reply", "--answer-units", 1).code == 0
    assert (out / "answer-replies.jsonl").read_bytes() == count


def test_a_budget_ends_it_a_larger_one_goes_on(
    run: Run, data: Path, script: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = (
        "eval", data, "--retrievers", "bm25", "--out", out,
        "--answers", f"{script}:reply", "--judge", f"{script}:reply",
        "--direct-answers",
    )  # fmt: skip
    told = run(*command, "--max-requests", 5)
    assert told.code == 3
    assert (
        "ended early: the limit of 5 requests is reached; the same command resumes"
        in told.err
    )
    assert asked(script) == 5
    failed = [
        line for line in read_lines(out / "answers.jsonl") if line["answer"] is None
    ]
    assert failed
    assert all(
        "limit of 5 requests" in line["error"] or "ending" in line["error"]
        for line in failed
    )
    assert run(*command).code == 0
    assert asked(script) == 12, (
        "two answers to each question, which are the same and are judged once"
    )
    assert rows_of(out)["whole document", "micro", "accuracy"]["questions"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "x.py:reply"], "got --judge without --answers"),
        (["--direct-answers"], "got --direct-answers without --answers"),
        (["--max-requests", "3"], "got --max-requests without --answers"),
        (["--answers", "gpt"], "language model 'gpt': expected PROVIDER:MODEL"),
        (["--answers", "absent.py:model"], "absent.py: no such file"),
        (
            ["--answers", "{script}:reply", "--judge", "absent.py:model"],
            "absent.py: no such file",
        ),
        (
            ["--answers", "{script}:reply", "--answer-form", "poem"],
            "--answer-form: got 'poem'",
        ),
        (["--answers", "{script}:reply", "--corpus"], "got --answers with --corpus"),
    ],
)
def test_bad_arguments(
    run: Run,
    data: Path,
    script: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    filled = [argument.replace("{script}", str(script)) for argument in arguments]
    run(
        "eval", data, "--retrievers", "bm25", "--out", tmp_path / "out", *filled
    ).refuses(message)
    assert not (tmp_path / "out").exists()
    assert not asked(script)
