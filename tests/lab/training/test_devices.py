"""One model on several processes: the same training as on one, and on again after one died."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_rag.apps.cli import main
from spscanner_rag.lab.training.devices import Workers, joined_workers
from tests.lab.training.conftest import RECIPE, SHAPE

Files = tuple[Path, Path, Path, Path]
TOGETHER = 'steps = 40\nsequences_per_step = 4\ndtype = "float32"\n'
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2", "--standalone"]


def test_the_sequences_of_a_step_are_each_read_once() -> None:
    lengths = [700, 20, 30, 400, 300, 10, 5]
    shares = [Workers(rank, 3).share(lengths) for rank in range(3)]
    assert sorted(number for share in shares for number in share) == list(range(7))
    loads = [sum(lengths[number] for number in share) for share in shares]
    assert max(loads) == 700  # the longest is read alone
    assert Workers(0, 3).share([5]) == [0]
    assert Workers(1, 3).share([5]) == []


def test_one_process_reads_everything_and_sends_nothing() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    with joined_workers("cpu") as (together, device):
        assert (together.leads, together.count, device) == (True, 1, "cpu")
        assert together.share([3, 4]) == [0, 1]
        assert together.add_up([parameter], 2.5, torch.device("cpu")) == 2.5
    assert parameter.grad is None


def test_a_numbered_device_is_refused_for_several_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="expected auto, cpu or cuda"), joined_workers("cuda:1"):
        pass


def command(out: Path, recipe: Path, shape: Path, corpus: Path, dev: Path) -> list[str]:
    options = {"--config": shape, "--data": corpus, "--validation": dev, "--out": out, "--device": "cpu"}
    named = [str(each) for option in options.items() for each in option]
    return ["-m", "spscanner_rag.apps.cli", "train", str(recipe), *named, "--no-progress"]


def losses(out: Path) -> list[float]:
    records = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    found = [record["loss"] for record in records if "loss" in record]
    assert [record["step"] for record in records if "loss" in record] == list(range(1, len(found) + 1))
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, corpus_file: Path, validation_file: Path) -> Files:
    folder = tmp_path_factory.mktemp("devices")
    recipe, shape = folder / "recipe.toml", folder / "shape.json"
    kept = [line for line in RECIPE.splitlines() if not line.startswith(("steps", "sequences_per_step"))]
    recipe.write_text("\n".join([TOGETHER, *kept]) + "\n", encoding="utf-8")
    shape.write_text(json.dumps(SHAPE), encoding="utf-8")
    return recipe, shape, corpus_file, validation_file


@pytest.fixture(scope="module")
def alone(files: Files) -> list[float]:
    """The losses of one process."""
    out = files[0].parent / "one"
    assert main([*command(out, *files)[2:], "--threads", "1"]) == 0
    return losses(out)


def run(arguments: list[str]) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_two_workers_train_as_one(tmp_path: Path, files: Files, alone: list[float]) -> None:
    run([*TORCHRUN, *command(tmp_path / "two", *files)])
    np.testing.assert_allclose(losses(tmp_path / "two"), alone, rtol=1e-4, atol=1e-4)
    assert not list((tmp_path / "two").glob(".*"))


def processes_with(text: str) -> list[int]:
    """The processes whose command line has a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:  # it has ended
            continue
    return sorted(found)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the workers in /proc")
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_worker_is_started_again_from_the_last_state(
    tmp_path: Path, files: Files, alone: list[float], killed: int
) -> None:
    out = tmp_path / "two"
    with started([*TORCHRUN, *command(out, *files)], out) as (group, log):
        workers = [each for each in processes_with(str(out)) if each != group.pid]
        os.kill(workers[killed], signal.SIGKILL)
        assert not (out / "model.safetensors").exists()  # it was in the middle
        assert group.wait(240) == 0, log.read_text()[-3000:]
    np.testing.assert_allclose(losses(out), alone, rtol=1e-4, atol=1e-4)
    assert processes_with(str(out)) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the workers in /proc")
def test_another_number_of_processes_goes_on(tmp_path: Path, files: Files, alone: list[float]) -> None:
    out = tmp_path / "two"
    with started([*TORCHRUN, *command(out, *files)], out):
        pass
    assert not (out / "model.safetensors").exists()
    run(command(out, *files))
    np.testing.assert_allclose(losses(out), alone, rtol=1e-4, atol=1e-4)


@contextmanager
def started(arguments: list[str], out: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A run that has saved its first state; all of its processes are killed in the end."""
    log = out.with_suffix(".log")
    with log.open("w") as stream:
        group = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=stream,
            stderr=stream,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    try:
        while not (out / "training_state.pt").exists():
            assert group.poll() is None, log.read_text()[-3000:]
            time.sleep(0.01)
        yield group, log
    finally:
        group.kill()
        group.wait()
        for worker in processes_with(str(out)):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        while processes_with(str(out)):
            time.sleep(0.01)
