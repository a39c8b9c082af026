"""Batches through a local Ray: the same parts as one process, whatever dies in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install spscanner-rag[ray]"),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]

MARK = "SPSCANNER_TEST_RUN"
ROWS = 60


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of which some are poisoned."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    texts = [f"Keeper {n} wrote. He signed it. " * 40 for n in range(ROWS)]
    lines: list[object] = [
        {"id": f"row-{n}", "query": "Who signed the treaty?", "text": text} for n, text in enumerate(texts)
    ]
    lines[7] = {"id": "wrong", "query": "Who?", "text": [1, 2]}
    lines[21] = {"id": "surrogates", "query": "Who \ud800?", "text": "\udfff Who? \ud800\n" * 20}
    lines[33] = 5
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


class Batch:
    """`spscanner batch` in a process of its own, all of whose processes have a mark in their environment."""

    def __init__(self, mark: str, arguments: list[object], log: Path) -> None:
        self.mark, self.log = mark, log
        with log.open("w") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "spscanner_rag.apps.cli", "batch", *map(str, arguments)],
                stdout=written,
                stderr=written,
                env=os.environ | {MARK: mark},
            )

    def wait(self) -> tuple[int, str]:
        return self.process.wait(200), self.log.read_text()

    def processes(self, name: str = "") -> list[int]:
        """Those that still run, of those whose command line has a text."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                own = f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes()
                if own and name.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # it has ended
                continue
        return found

    def wait_for_parts(self, out: Path, count: int) -> None:
        while len(list(out.glob("part-*.parquet"))) < count:
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    def wait_until_nothing_is_left(self) -> None:
        deadline = time.monotonic() + 180
        while self.processes():
            assert time.monotonic() < deadline, [
                Path(f"/proc/{each}/cmdline").read_bytes() for each in self.processes()
            ]
            time.sleep(0.1)


@pytest.fixture
def start(tmp_path: Path, rows: Path, checkpoint: Path) -> Iterator[Any]:
    """Starts a batch over the rows into a folder; kills what a failed test leaves."""
    started: list[Batch] = []

    def start(out: Path, *options: object, workers: int = 2) -> Batch:
        fixed = [rows, "--out", out, "--model", checkpoint, "--device", "cpu", "--dtype", "float32"]
        arguments = [*fixed, "--threads", 1, "--rows-per-part", 2, "--workers", workers, *options]
        batch = Batch(f"{tmp_path}-{len(started)}", arguments, tmp_path / f"log-{len(started)}")
        started.append(batch)
        return batch

    yield start
    for batch in started:
        for process in batch.processes():
            os.kill(process, signal.SIGKILL)
        batch.process.wait()


@pytest.fixture
def expected(tmp_path: Path, start: Any) -> dict[str, list[dict[str, Any]]]:
    """The parts that one process makes."""
    code, log = start(tmp_path / "one", workers=1).wait()
    assert code == 0, log
    assert "2 of them with an error" in log
    return parts(tmp_path / "one")


def parts(out: Path) -> dict[str, list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    return {path.name: pq.read_table(path).to_pylist() for path in sorted(out.glob("part-*.parquet"))}


def assert_same(out: Path, expected: dict[str, list[dict[str, Any]]]) -> None:
    """The same rows, sentences and errors, and logits within the package's tolerance."""
    found = parts(out)
    assert list(found) == list(expected)
    for name, records in expected.items():
        for one, other in zip(records, found[name], strict=True):
            for key in ("id", "error", "sentence_count", "tokens"):
                assert one[key] == other[key]
            logits = [[each["logit"] for each in record["sentences"]] for record in (one, other)]
            assert logits[1] == pytest.approx(logits[0], abs=1e-4)
    assert not list(out.glob("*.part"))


def test_a_killed_worker_is_replaced(start: Any, expected: Any, tmp_path: Path) -> None:
    batch = start(tmp_path / "two")
    batch.wait_for_parts(tmp_path / "two", 1)
    workers = batch.processes("MapWorker")
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    code, log = batch.wait()
    assert code == 0, log
    assert_same(tmp_path / "two", expected)
    batch.wait_until_nothing_is_left()


def test_a_killed_driver_leaves_no_process_and_the_run_goes_on(
    start: Any, expected: Any, tmp_path: Path
) -> None:
    out = tmp_path / "two"
    batch = start(out)
    batch.wait_for_parts(out, 2)
    batch.process.kill()
    batch.process.wait()
    batch.wait_until_nothing_is_left()  # until then a worker may finish the part that it was writing
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert len(kept) < ROWS / 2  # it was in the middle
    code, log = start(out).wait()
    assert code == 0, log
    assert f"{len(kept):,} parts of an earlier run" in log
    assert_same(out, expected)
    for name, written in kept.items():
        assert (out / name).stat().st_mtime_ns == written


def test_a_worker_that_runs_out_of_memory_each_time_costs_its_part_alone(
    start: Any, expected: Any, tmp_path: Path, rows: Path, checkpoint: Path
) -> None:
    """The kernel ends such a worker with SIGKILL; here the worker does so itself when it comes to one row."""
    out, log = tmp_path / "two", tmp_path / "log"
    program = f"""
import os, signal
import spscanner_rag.apps.batch.workers as pool
from spscanner_rag.apps.cli import main

class Killed(pool._Actor):
    def __call__(self, batch):
        if batch["chunk"][0]["number"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)

pool._Actor = Killed
raise SystemExit(main(["batch", {str(rows)!r}, "--out", {str(out)!r}, "--model", {str(checkpoint)!r}, "--device",
    "cpu", "--dtype", "float32", "--threads", "1", "--rows-per-part", "2", "--workers", "2"]))
"""
    with log.open("w") as written:
        code = subprocess.run(
            [sys.executable, "-c", program], stdout=written, stderr=written, timeout=250, check=False
        ).returncode
    assert code == 3, log.read_text()
    assert "part 5: its worker died each time" in log.read_text()
    assert len(parts(out)) == ROWS / 2 - 1
    code, text = start(out).wait()
    assert code == 0, text
    assert_same(out, expected)
