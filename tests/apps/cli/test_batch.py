"""The command line of batches, in one process."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.batch import encoding
from spscanner_rag.apps.batch.run import Progress
from spscanner_rag.apps.cli.batch import _FAILURES_SHOWN, _write_summary
from tests.command_line import Run, read_lines, write_lines


@pytest.fixture(autouse=True)
def _as_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "find_spec", lambda name: None)


@pytest.fixture
def batch(run: Run, checkpoint: Path, tmp_path: Path) -> Run:
    """Runs `spscanner batch` into the folder ``out``."""

    def batch(*arguments: object) -> Any:
        fixed = (
            "--out",
            tmp_path / "out",
            "--model",
            checkpoint,
            "--device",
            "cpu",
            "--dtype",
            "float32",
        )
        return run("batch", *arguments, *fixed)

    return batch


def records(out: Path) -> list[dict[str, Any]]:
    return [
        record for part in sorted(out.glob("part-*")) for record in read_lines(part)
    ]


def test_pairs_with_columns_of_other_names(batch: Run, tmp_path: Path) -> None:
    rows = write_lines(
        tmp_path / "rows.jsonl",
        {
            "number": 5,
            "question": "Who signed it?",
            "body": "Anne signed it. The bell rang.",
        },
        {"number": 6, "question": "Who signed it?"},
    )
    columns = (
        "--id-column",
        "number",
        "--query-column",
        "question",
        "--text-column",
        "body",
    )
    done = batch(rows, *columns, "--top-k", 1, "--no-texts")
    assert (done.code, done.err) == (0, "")
    assert "2 rows, 1 of them with an error" in done.out
    (tmp_path / "out" / "part-000000.jsonl").rename(tmp_path / "out" / "kept")
    assert "0 parts" not in batch(rows, *columns, "--top-k", 1, "--no-texts").out, (
        "the part is made again"
    )
    assert (
        "1 parts of an earlier run"
        in batch(rows, *columns, "--top-k", 1, "--no-texts").out
    )
    batch(rows, *columns, "--top-k", 3, "--no-texts").refuses(
        "selection: top_k: 1, now 3"
    )
    first, second = records(tmp_path / "out")
    assert (first["id"], len(first["sentences"]), first["sentences"][0]["text"]) == (
        "5",
        1,
        None,
    )
    assert second["error"] == "body: missing; expected a string"


def test_questions_on_documents_of_several_kinds(
    batch: Run, tmp_path: Path, document: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.html").write_text("<h1>Peace</h1><p>Anne signed the treaty.</p>")
    (folder / "b.txt").write_bytes(b"")
    questions = write_lines(
        tmp_path / "questions.jsonl", {"id": "when", "query": "When was it?"}
    )
    done = batch(folder, document, "-q", "x", "--query", "Who?", "--queries", questions)
    assert done.code == 2  # -q belongs to scan
    done = batch(folder, document, "--query", "Who?", "--queries", questions)
    assert done.code == 0
    found = {
        (Path(each["id"]).name, each["query_id"]): each
        for each in records(tmp_path / "out")
    }
    assert {name for name, _ in found} == {"a.html", "b.txt", "treaty.txt"}
    assert {number for _, number in found} == {"1", "when"}
    assert found["a.html", "1"]["sentences"][0]["section"] == "Peace"
    assert "empty file" in found["b.txt", "when"]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "cannot be read"),
        (["rows.jsonl", "--top-k", "0"], "--top-k"),
        (["rows.jsonl", "--threshold", "2"], "--threshold"),
        (["rows.jsonl", "--query", " "], "--query"),
        (
            ["rows.jsonl", "--queries", "rows.jsonl", "--query-column", "missing"],
            "missing: missing",
        ),
        (["text.txt"], "without a question"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(
    batch: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "rows.jsonl", {"query": "Who?", "text": "He."})
    batch(*arguments).refuses(message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers: got 2 without --ray"),
        (["--ray", "auto", "--device", "cuda:1"], "--device: got 'cuda:1' with --ray"),
    ],
)
def test_options_of_a_cluster_that_do_not_fit_are_refused(
    run: Run, tmp_path: Path, options: list[str], message: str
) -> None:
    rows = write_lines(tmp_path / "rows.jsonl", {"query": "Who?", "text": "He."})
    run("batch", rows, "--out", tmp_path / "out", *options).refuses(message)
    assert not (tmp_path / "out").exists()


def test_a_bad_row_of_questions_is_named(batch: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Anne signed it.")
    questions = write_lines(
        tmp_path / "questions.jsonl", {"id": "a", "query": "Who?"}, {"id": "b"}
    )
    batch(text, "--queries", questions).refuses("b: query: missing")
    blank = write_lines(tmp_path / "blank.jsonl", {"id": "c", "query": " "})
    batch(text, "--queries", blank).refuses("blank.jsonl: c")


def test_parts_that_failed_and_repeated_ids_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = Progress(parts=13, resumed=2, done=1, rows=4, tokens=1200)
    result.failures = [f"part {number}: no memory" for number in range(12)]
    result.repeated = ["a\x1b", "b"]
    _write_summary(result, "out")
    out, err = capsys.readouterr()
    assert "4 rows, 1,200 tokens in 1 parts, 2 parts of an earlier run: out" in out
    assert "12 of 13 parts were not written; run the same command to try again" in out
    assert "2 rows have the same id as an earlier one (first: 'a" in err
    assert "\x1b" not in err
    assert err.count("no memory") == _FAILURES_SHOWN
