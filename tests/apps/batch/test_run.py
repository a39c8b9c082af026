"""Parts that an interrupted run keeps, and runs that are refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.apps.batch.parts import IDENTITY
from spscanner_rag.apps.batch.plan import plan_of
from spscanner_rag.apps.batch.rows import RowReader
from spscanner_rag.apps.batch.run import Progress, run_batch
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.apps.batch.worker import BatchTask, Worker
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.folder_lock import FolderInUseError, folder_lock
from spscanner_rag.system.run_inputs import OtherRunError
from tests.apps.batch.conftest import Rows, Run, contents, pairs


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
    monkeypatch.setattr(
        RowReader,
        "rows",
        lambda own, chunk: read.append(chunk.number) or right(own, chunk),
    )
    done = run(path, tmp_path / "out")
    assert (read, done.resumed, done.done) == ([2], 2, 1)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_another_run_in_the_folder_is_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
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
        with pytest.raises(
            OtherRunError, match="give the same again, or another --out"
        ):
            other()
    assert contents(out) == before


def test_parts_of_unknown_origin_are_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    path, out = json_lines(pairs(5)), tmp_path / "out"
    run(path, out)
    for damage in (
        lambda: (out / IDENTITY).write_text("{"),
        lambda: (out / IDENTITY).unlink(),
    ):
        damage()
        with pytest.raises(OtherRunError, match="give another --out"):
            run(path, out)


def test_two_runs_at_once_are_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    with (
        folder_lock(tmp_path / "out"),
        pytest.raises(FolderInUseError, match="in use by another run"),
    ):
        run(json_lines(pairs(2)), tmp_path / "out")


def test_unreadable_parts_leave_the_others(
    json_lines: Rows, tiny_scanner: Scanner, tmp_path: Path
) -> None:
    first, second = json_lines(pairs(2), "a.jsonl"), json_lines(pairs(3), "b.jsonl")
    plan = plan_of([first, second], Columns(), 10, False)
    os.unlink(first)
    task = BatchTask(Columns(), (), Selection(), "jsonl")
    worker = Worker(tiny_scanner, task, plan.check_unchanged)
    done = run_batch(plan, task, {}, tmp_path / "out", worker.finish_all)
    assert (done.done, done.rows) == (1, 3)
    assert "part 0: ValueError" in done.failures[0]
