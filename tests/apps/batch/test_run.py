"""A run in a folder: parts, resuming, and what is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.apps.batch.batch_run import IDENTITY, Progress, Work, run_batch
from spscanner_rag.apps.batch.inputs import Columns, RowReader, plan_of
from spscanner_rag.files.writing import FolderInUseError, OtherRunError, folder_lock
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner
from tests.apps.batch.conftest import Rows, pairs

Run = Callable[..., Progress]


def rounded(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its numbers in float32, as Parquet has them."""
    return {key: np.float32(value) if isinstance(value, float) else value for key, value in record.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_parquet_parts_have_the_same_records(json_lines: Rows, run: Run, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    path = json_lines(pairs(5))
    run(path, tmp_path / "a")
    run(path, tmp_path / "b", form="parquet")
    parts = [part.read_text() for part in sorted((tmp_path / "a").glob("part-*"))]
    lines = map(json.loads, "".join(parts).splitlines())
    for expected, got in zip(lines, pq.read_table(tmp_path / "b").to_pylist(), strict=True):
        sentences = zip(got.pop("sentences"), expected.pop("sentences"), strict=True)
        assert all(rounded(one) == rounded(other) for one, other in sentences)
        assert rounded(got) == rounded(expected)


def test_an_interrupted_run_goes_on_and_reads_no_finished_row_again(
    json_lines: Rows, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = json_lines(pairs(9))
    run(path, tmp_path / "whole")

    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, tmp_path / "out", show=stop)
    read: list[int] = []
    right = RowReader.rows
    monkeypatch.setattr(RowReader, "rows", lambda own, chunk: read.append(chunk.number) or right(own, chunk))
    done = run(path, tmp_path / "out")
    assert (read, done.found, done.done) == ([2], 2, 1)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_another_run_in_the_folder_is_refused(json_lines: Rows, run: Run, tmp_path: Path) -> None:
    path, out = json_lines(pairs(5)), tmp_path / "out"
    run(path, out)
    before = contents(out)
    others: list[Callable[[], object]] = [
        lambda: run(json_lines(pairs(6), "other.jsonl"), out),
        lambda: run(path, out, top_k=3),
        lambda: run(path, out, rows=2),
        lambda: run(path, out, files="b"),
    ]
    for other in others:
        with pytest.raises(OtherRunError, match="give the same again, or another --out"):
            other()
    assert contents(out) == before


def test_parts_of_unknown_origin_are_refused(json_lines: Rows, run: Run, tmp_path: Path) -> None:
    path, out = json_lines(pairs(5)), tmp_path / "out"
    run(path, out)
    for damage in (lambda: (out / IDENTITY).write_text("{"), lambda: (out / IDENTITY).unlink()):
        damage()
        with pytest.raises(OtherRunError, match="give another --out"):
            run(path, out)


def test_two_runs_at_once_are_refused(json_lines: Rows, run: Run, tmp_path: Path) -> None:
    with folder_lock(tmp_path / "out"), pytest.raises(FolderInUseError, match="in use by another run"):
        run(json_lines(pairs(2)), tmp_path / "out")


def test_unreadable_parts_leave_the_others(json_lines: Rows, tiny_scanner: Scanner, tmp_path: Path) -> None:
    first, second = json_lines(pairs(2), "a.jsonl"), json_lines(pairs(3), "b.jsonl")
    plan = plan_of([first, second], Columns(), 10, False)
    os.unlink(first)
    done = run_batch(plan, Work(Columns(), (), Selection(), "jsonl"), {}, tmp_path / "out", tiny_scanner)
    assert (done.done, done.rows) == (1, 3)
    assert "part 0: ValueError" in done.failures[0]
