"""`spscanner eval`, from its arguments to the files it writes."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import Scanner
from spscanner_rag.cli import main
from spscanner_rag.evaluation.sampling import is_held_out

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end came."


def line(doc_id: str, source: str, **changes: Any) -> str:
    question = {"qid": f"{doc_id}-q", "question": "Which otter swims?", "evidence": [[4, 9]]}
    return json.dumps(
        {"doc_id": doc_id, "source": source, "split": "dev", "text": TEXT, "questions": [question], **changes}
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join([line("d1", "a"), line("d2", "a"), line("d3", "b")]) + "\n", encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["eval", *map(str, arguments)])


def test_writes_rows_and_a_page(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--unit", "sentence,chunk", "--out", out) == 0
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    recall = {(r["source"], r["unit"]): r["value"] for r in rows if r["metric"] == "recall" and r["k"] == 1}
    assert recall == {(s, u): 1.0 for s in ("a", "b", "macro", "micro") for u in ("sentence", "chunk")}
    keys = "source split retriever unit metric k value ci_low ci_high questions documents".split()
    assert all(list(row) == keys for row in rows)
    with (out / "results.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert "bm25, chunks" in (out / "results.html").read_text(encoding="utf-8")
    assert len((out / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 6
    printed = capsys.readouterr().out
    assert re.search(r"macro\W+bm25\W+100\.0\W+100\.0", printed)
    assert re.search(r"micro\W+bm25, chunks\W+100\.0", printed)


def test_the_scanner_against_bm25(
    data: Path, tmp_path: Path, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scanner, "from_pretrained", _only(tiny_checkpoint))
    out = tmp_path / "out"
    assert run(data, "--retrievers", "scanner,bm25", "--context-ablation", "--out", out) == 0
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    names = {row["retriever"] for row in rows}
    assert names == {"scanner", "bm25", "scanner, sentence alone", "scanner, 1,024 tokens"}
    differences = json.loads((out / "differences.json").read_text(encoding="utf-8"))
    assert [row["second"] for row in differences if row["metric"] == "recall@10"] == [
        "bm25",
        "scanner, sentence alone",
        "scanner, 1,024 tokens",
    ]


def _only(folder: Path) -> Any:
    load = Scanner.from_pretrained
    return lambda model=None, **options: load(model or folder, **options)


def test_a_run_is_taken_up_and_a_retriever_may_be_added(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    first = (out / "records.jsonl").read_text(encoding="utf-8")
    assert run(data, "--retrievers", "bm25", "--unit", "chunk", "--out", out) == 0
    assert (out / "records.jsonl").read_text(encoding="utf-8").startswith(first)


def test_sample_and_held_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--max-questions", 1, "--out", out) == 0
    assert len((out / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert run(data, "--retrievers", "bm25", "--held-out", "a", "--out", tmp_path / "held") == 0
    lines = (tmp_path / "held" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    kept = {json.loads(line)["doc_id"] for line in lines}
    assert kept == {"d3"} | {doc_id for doc_id in ("d1", "d2") if is_held_out(doc_id)}
    assert kept != {"d1", "d2", "d3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retrievers", "elastic"], "retriever 'elastic' does not exist; expected one of: scanner"),
        (["--retrievers", "bm25,bm25"], "got a retriever twice"),
        (["--retrievers", ","], "got no retriever"),
        (["--retrievers", "crossencoder"], "expected crossencoder:MODEL"),
        (["--retrievers", "bm25:x"], "not complete or too long"),
        (["--retrievers", "hybrid:bm25"], "expected at least two"),
        (["--retrievers", "bm25", "--unit", "page"], "expected one of sentence, chunk, passage, document"),
    ],
)
def test_bad_arguments(
    data: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(data, "--out", out, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (out / "results.json").exists()
    assert not out.exists()  # nothing half made


def test_bad_lines(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with data.open("a", encoding="utf-8") as file:
        file.write(
            "{broken\n" + line("d4", "a", questions=[{"qid": "q", "question": "?", "evidence": [[0, 999]]}])
        )
    assert run(data, "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert "data.jsonl, line 4" in capsys.readouterr().err
    assert run(data, "--retrievers", "bm25", "--skip-bad", "--out", tmp_path / "out") == 0
    errors = capsys.readouterr().err
    assert "line 4" in errors
    assert "line 5, question q" in errors
    assert "Lines left out: 2" in (tmp_path / "out" / "results.html").read_text(encoding="utf-8")


def test_other_arguments_in_the_same_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "--retrievers", "bm25", "--out", tmp_path / "out") == 0
    assert run(data, "--retrievers", "bm25", "--seed", 1, "--out", tmp_path / "out") == 2
    assert "seed: 0, now 1" in capsys.readouterr().err


def test_no_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(line("d", "a", questions=[]), encoding="utf-8")
    assert run(path, "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert "no answerable question with evidence" in capsys.readouterr().err
    assert run(tmp_path / "missing.jsonl", "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert "missing.jsonl" in capsys.readouterr().err


def test_the_committed_questions(tmp_path: Path) -> None:
    questions = Path(__file__).resolve().parent.parent / "examples" / "data" / "questions.jsonl"
    assert run(questions, "--retrievers", "bm25", "--unit", "sentence,chunk", "--out", tmp_path / "out") == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert {row["questions"] for row in rows if row["metric"] == "recall"} == {3}
