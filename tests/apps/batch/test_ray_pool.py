"""Batches through Ray: the same parts as from one process, also if a worker dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest

from spscanner_rag.apps.batch.encoding import default_form
from spscanner_rag.apps.batch.plan import plan_of
from spscanner_rag.apps.batch.ray_pool import AUTO, RayPool
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.apps.batch.worker import BatchTask
from spscanner_rag.results import Selection
from tests.apps.batch.conftest import Rows, contents, pairs

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason='needs Ray: pip install "ray[data]"'
)
MARK = "SPSCANNER_TEST_OF_RAY"
SECONDS = 150


@pytest.fixture
def command(json_lines: Rows, tiny_checkpoint: Path) -> Callable[..., list[str]]:
    """The command line of a run over many rows of one file."""
    rows = json_lines(pairs(60))

    def command(out: str | Path, *options: str) -> list[str]:
        fixed = "--rows-per-part 4 --device cpu --dtype float32 --threads 1".split()
        arguments = ["batch", rows, "--out", str(out), "--model", str(tiny_checkpoint)]
        program = [sys.executable, "-m", "spscanner_rag.apps.cli"]
        return [*program, *arguments, *fixed, *options]

    return command


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=SECONDS, capture_output=True)


def actors_with(mark: str) -> Iterator[int]:
    """Ids of the processes of Ray's actors that a marked command started."""
    for process in Path("/proc").iterdir():
        try:
            title = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:  # not a process, or one that has ended
            continue
        if b"MapWorker" in title and f"{MARK}={mark}".encode() in environment:
            yield int(process.name)


def parts_in(folder: Path) -> Mapping[str, bytes]:
    files = contents(folder) if folder.exists() else {}
    return {name: data for name, data in files.items() if name.startswith("part-")}


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the worker in /proc")
def test_a_worker_that_dies_loses_nothing(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    run(command(tmp_path / "alone"))
    mark = uuid4().hex
    out = tmp_path / "out"
    with subprocess.Popen(
        command(out, "--ray", "auto", "--workers", "2"),
        env=os.environ | {MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        killed: list[int] = []
        stop = time.monotonic() + SECONDS
        while not killed and process.poll() is None and time.monotonic() < stop:
            time.sleep(0.02)
            killed = list(actors_with(mark))[:1] if parts_in(out) else []
        for actor in killed:
            os.kill(actor, signal.SIGKILL)
        output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert killed, "the run ended before a worker could be killed"
    assert "60 rows, " in output
    assert "with an error" not in output
    assert "in 15 parts" in output
    assert parts_in(out) == parts_in(tmp_path / "alone")
    while list(actors_with(mark)):  # they notice that their cluster has gone
        assert time.monotonic() < stop, "an actor is left"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers: got 2 without --ray"),
        (["--ray", "auto", "--device", "cuda:1"], "--device: got 'cuda:1' with --ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    command: Callable[..., list[str]], tmp_path: Path, options: list[str], message: str
) -> None:
    refused = subprocess.run(
        command(tmp_path / "out", *options), capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert message in refused.stderr
    assert not (tmp_path / "out").exists()


def test_without_ray_the_line_that_installs_it_is_named(
    json_lines: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    plan = plan_of([json_lines(pairs(1))], Columns(), 4, has_queries=False)
    task = BatchTask(Columns(), (), Selection(), default_form())
    pool = RayPool(task, plan, {}, AUTO)
    with pytest.raises(ImportError, match=r'--ray needs ray: pip install "\.\[ray\]"'):
        list(pool.finish_all(plan.chunks))


def test_importing_the_pool_imports_no_ray() -> None:
    module = "spscanner_rag.apps.batch.ray_pool"
    code = f"import sys; import {module}; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
