"""No command replaces a file that it reads: every command with an output is tried."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.apps.cli.app import program
from tests.attack.conftest import Attempt, assert_one_line
from tests.command_line import Run, run

__all__ = ["run"]

QUESTION = {
    "qid": "1",
    "question": "Who left?",
    "answers": ["the keeper"],
    "evidence": [[11, 27]],
}
ROW = {
    "id": "1",
    "doc_id": "1",
    "source": "s",
    "query": "Who left?",
    "text": "It rained. The keeper left.",
    "questions": [QUESTION],
}
SHAPE = {"d_model": 16, "n_layer": 1, "vocab_size": 384}
ASKED = ("-q", "Who left?")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents, questions and other names of the same files."""
    page = "<h1>T</h1><p>It rained. The keeper left.</p>"
    for folder in ("in", "broken", "out", "model"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in" / "a.html").write_text(page)
    (tmp_path / "in" / "b.html").write_text(page)
    (tmp_path / "broken" / "a.html").write_text(page)
    (tmp_path / "broken" / "bad.html").write_bytes(b"\0\xff" * 99)
    (tmp_path / "link.html").symlink_to(tmp_path / "in" / "a.html")
    os.link(tmp_path / "in" / "a.html", tmp_path / "hard.html")
    for name in (
        "rows.jsonl",
        "rows.jsonl.part",
        "model/tokenizer.json",
        "out/_parts.jsonl",
        "out/part-000000.jsonl",
        "out/records.jsonl",
        "out/test.jsonl",
        "out/train.jsonl",
        "out/train.jsonl.part",
        "out/log.jsonl",
        "out/replies.jsonl",
    ):
        (tmp_path / name).write_text(json.dumps(ROW) + "\n")
    for name in ("model/config.json", "out/config.json"):
        (tmp_path / name).write_text(json.dumps(SHAPE))
    (tmp_path / "to-train.jsonl").symlink_to(tmp_path / "out" / "train.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPSCANNER_CACHE", str(tmp_path / "cache"))
    return tmp_path


TRIES = {
    "scan": [
        ["scan", "in", *ASKED, "--out", "in/b.html"],
        ["scan", "in", *ASKED, "--text-out", "in/a.html"],
        ["scan", "in", *ASKED, "--text-out", "link.html"],
        ["scan", "in", *ASKED, "--out", "hard.html"],
        ["scan", "link.html", *ASKED, "--out", "in/a.html"],
        ["scan", "hard.html", *ASKED, "--text-out", "link.html"],
        ["scan", "broken", *ASKED, "--out", "broken/bad.html"],
        ["scan", "in/a.html", *ASKED, "--out", "r.txt", "--text-out", "./r.txt"],
        ["scan", "in/a.html", *ASKED, "--model", "model", "--format", "json",
         "--out", "model/config.json"],
        ["scan", "in/a.html", *ASKED, "--tokenizer", "model/tokenizer.json",
         "--out", "in/../model/tokenizer.json"],
    ],
    "compare": [
        ["compare", "in", *ASKED, "--retrievers", "bm25", "--out", "in/a.html"],
        ["compare", "in", *ASKED, "--retrievers", "bm25", "--text-out", "link.html"],
        ["compare", "in/a.html", *ASKED, "--retrievers", "scanner:model",
         "--out", "model/config.json"],
        ["compare", "in/a.html", *ASKED, "--retrievers", "cascade:bm25>dense:model@9",
         "--out", "model/tokenizer.json"],
    ],
    "verify": [
        ["verify", "in/a.html", "in/b.html", "--no-claims", "--out", "in/a.html"],
        ["verify", "in/a.html", "in", "--no-claims", "--out", "in/b.html"],
        ["verify", "rows.jsonl", "link.html", "--no-claims", "--out", "hard.html"],
        ["verify", "rows.jsonl", "in/a.html", "--model", "model",
         "--out", "model/config.json"],
    ],
    "batch": [
        ["batch", "out/_parts.jsonl", "--out", "out"],
        ["batch", "out/part-000000.jsonl", "--out", "out"],
        ["batch", "rows.jsonl", "--queries", "out/part-000000.jsonl", "--out", "out"],
        ["batch", "out", "--out", "out"],
    ],
    "eval": [
        ["eval", "out/records.jsonl", "--out", "out", "--retrievers", "bm25"],
        ["eval", "rows.jsonl", "out/records.jsonl", "--out", "in/../out",
         "--retrievers", "bm25"],
    ],
    "train": [
        ["train", "--data", "out/log.jsonl", "--config", "model/config.json",
         "--out", "out"],
        ["train", "--data", "rows.jsonl", "--config", "out/config.json",
         "--out", "out"],
        ["train", "--data", "rows.jsonl", "--base", "model", "--out", "model"],
    ],
    "encoder": [
        ["encoder", "--data", "rows.jsonl", "--base", "model", "--model", "model",
         "--out", "model"],
    ],
    "sentence-scan": [
        ["sentence-scan", "--unseen", "rows.jsonl", "--base", "model",
         "--out", "model"],
        ["sentence-scan", "--unseen", "model=rows.jsonl", "--out", "model"],
    ],
    "synthesize": [
        ["synthesize", "out/train.jsonl", "--out", "out"],
        ["synthesize", "to-train.jsonl", "--out", "out"],
        ["synthesize", "out", "--out", "out"],
        ["synthesize", "rows.jsonl", "--against", "out/test.jsonl", "--out", "out"],
    ],
    "annotate": [
        ["annotate", "out/test.jsonl", "--out", "out"],
        ["annotate", "rows.jsonl", "out/replies.jsonl", "--out", "out"],
        ["annotate", "out/train.jsonl.part", "--out", "out"],
    ],
    "from-released": [
        ["from-released", "rows.jsonl", "--out", "rows.jsonl",
         "--tokenizer", "model/tokenizer.json"],
        ["from-released", "rows.jsonl.part", "--out", "rows.jsonl",
         "--tokenizer", "model/tokenizer.json"],
        ["from-released", "rows.jsonl", "--out", "model/tokenizer.json",
         "--tokenizer", "model/tokenizer.json"],
    ],
}  # fmt: skip
"""Arguments of commands, each with an output that is also an input."""

ALL = [(command, tries) for command, lists in TRIES.items() for tries in lists]


def digests(folder: Path) -> dict[str, str]:
    """The content of every file, by its path."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.mark.parametrize(("command", "arguments"), ALL)
def test_what_is_read_is_not_replaced(
    command: str, arguments: list[str], run: Run, home: Path, attempt: Attempt
) -> None:
    before = digests(home)
    with attempt("outputs: over inputs"):
        result = run(*arguments)
        assert result.code == 2, result
        assert_one_line(result.err.rstrip("\n"))
        assert "; expected another" in result.err
        assert digests(home) == before


def outputs_of(command: Any) -> list[str]:
    """The options of a command that name an output."""
    return [
        parameter.name
        for parameter in command.params
        if parameter.name.split("_")[-1] in ("out", "output")
    ]


def test_every_command_with_an_output_is_tried() -> None:
    commands = program().commands
    writing = {name for name, command in commands.items() if outputs_of(command)}
    assert writing == set(TRIES)
