"""Batches through Ray: the same parts as from one process, also if a worker dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from spscanner_rag.apps.batch.encoding import default_form
from spscanner_rag.apps.batch.plan import plan_of
from spscanner_rag.apps.batch.ray_pool import AUTO, RayPool, _Actor
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
            # by name: a part that is being written may be renamed before it is read
            is_begun = any(out.glob("part-*"))
            killed = list(actors_with(mark))[:1] if is_begun else []
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


class Cluster:
    """What the pool asks Ray before it starts actors."""

    def __init__(self, running: bool, **resources: float) -> None:
        self.running = running
        self.resources = resources
        self.started: list[dict[str, Any]] = []

    def init(self, address: str | None = None, **options: Any) -> None:
        if address is not None and not self.running:
            raise ConnectionError("nothing is there")
        self.started.append({"address": address, **options})

    def cluster_resources(self) -> dict[str, float]:
        return self.resources


@pytest.fixture
def pool(json_lines: Rows) -> Callable[..., RayPool]:
    """Makes a pool for one row."""
    plan = plan_of([json_lines(pairs(1))], Columns(), 4, has_queries=False)
    task = BatchTask(Columns(), (), Selection(), default_form())
    return lambda **options: RayPool(task, plan, {}, **options)


def test_a_running_cluster_is_joined_and_else_a_small_one_started(
    pool: Callable[..., RayPool],
) -> None:
    running = Cluster(running=True)
    pool()._connect(running)
    assert running.started[0]["address"] == AUTO
    none = Cluster(running=False)
    pool(workers=3, cpus=2)._connect(none)
    assert none.started[0]["address"] is None
    assert none.started[0]["num_cpus"] == 6
    with pytest.raises(ValueError, match="--ray: got 'ray://there'; expected the addr"):
        pool(address="ray://there")._connect(none)


@pytest.mark.parametrize(
    ("resources", "options", "workers"),
    [
        ({"CPU": 8}, {"cpus": 2}, 4),
        ({"CPU": 8, "GPU": 2}, {"gpus": 1}, 2),
        ({"CPU": 8}, {"gpus": 1}, 0),
        ({"CPU": 1}, {"cpus": 2}, 0),
    ],
)
def test_there_are_as_many_workers_as_a_cluster_has_room_for(
    pool: Callable[..., RayPool],
    resources: dict[str, float],
    options: dict[str, int],
    workers: int,
) -> None:
    cluster = Cluster(running=True, **resources)
    if workers:
        assert pool(**options)._workers_with_room(cluster) == workers
    else:
        with pytest.raises(ValueError, match="without room for a worker of"):
            pool(**options)._workers_with_room(cluster)


def test_an_actor_finishes_the_part_that_is_described(
    json_lines: Rows, tiny_checkpoint: Path
) -> None:
    plan = plan_of([json_lines(pairs(2))], Columns(), 4, has_queries=False)
    task = BatchTask(Columns(), (), Selection(), default_form())
    options = {"model": str(tiny_checkpoint), "device": "cpu", "dtype": "float32"}
    actor = _Actor(options, task)
    (chunk,) = plan.chunks
    # paths come back from a table as a list
    description = chunk._asdict() | {"paths": list(chunk.paths)}
    (part,) = actor({"chunk": [description]})["part"]
    assert (part["rows"], part["errors"], part["failure"]) == (2, 0, None)


def test_nothing_to_scan_starts_nothing(pool: Callable[..., RayPool]) -> None:
    assert list(pool().finish_all([])) == []


def test_without_ray_the_line_that_installs_it_is_named(
    pool: Callable[..., RayPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    scanning = pool()
    with pytest.raises(ImportError, match=r'--ray needs ray: pip install "\.\[ray\]"'):
        list(scanning.finish_all(scanning.plan.chunks))


def test_importing_the_pool_imports_no_ray() -> None:
    module = "spscanner_rag.apps.batch.ray_pool"
    code = f"import sys; import {module}; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
