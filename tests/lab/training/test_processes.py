"""Several processes train as one does, and one of them writes."""

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.training.loop import LOG_FILE
from spscanner_lab.training.processes import Processes, joined_processes
from tests.lab.training.conftest import RECIPE, SHAPE

REPOSITORY = Path(__file__).resolve().parents[3]


@given(st.lists(st.integers(1, 500), max_size=30), st.integers(1, 6))
def test_every_example_is_read_by_one_process(lengths: list[int], count: int) -> None:
    shares = [Processes(rank, count).share(lengths) for rank in range(count)]
    assert sorted(chain.from_iterable(shares)) == list(range(len(lengths)))
    loads = [sum(lengths[number] for number in share) for share in shares]
    assert max(loads) - min(loads) <= max(lengths, default=0)


def test_one_process_alone_changes_no_gradient() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    (2 * weight).sum().backward()
    assert Processes().add_up([weight], 6.0) == 6.0
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]


def test_other_devices_are_refused_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(ValueError, match="got mps for 2 processes; expected auto, cpu"),
        joined_processes("mps"),
    ):
        pass


@pytest.mark.parametrize(
    ("rank", "order"), [(0, ["make", "barrier"]), (1, ["barrier", "make"])]
)
def test_the_leader_writes_before_others_read(
    rank: int, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr("torch.distributed.barrier", lambda: calls.append("barrier"))
    Processes(rank, 2).leader_first(lambda: calls.append("make"))
    assert calls == order


def test_gradients_and_losses_of_two_processes_are_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A parameter that no process used keeps no gradient."""
    weight = torch.nn.Parameter(torch.ones(2))
    of_other = torch.nn.Parameter(torch.ones(2))
    unused = torch.nn.Parameter(torch.ones(1))
    (3 * weight).sum().backward()

    def all_reduce(summed: torch.Tensor) -> None:
        # the loss, which parameters have a gradient, and the gradients
        summed += torch.tensor([1.0, 1, 1, 0, 5, 5, 7, 8, 0])

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    loss = Processes(0, 2).add_up([weight, of_other, unused], 6.0)
    assert loss == 7.0
    assert weight.grad is not None
    assert weight.grad.tolist() == [8, 8]
    assert of_other.grad is not None
    assert of_other.grad.tolist() == [7, 8]
    assert unused.grad is None


def test_all_start_at_the_leader_s_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broadcast(steps: list[int]) -> None:
        steps[0] = 1200

    monkeypatch.setattr("torch.distributed.broadcast_object_list", broadcast)
    Processes(1, 2).check_step(1200)
    with pytest.raises(ValueError, match="process 1 found the state of step 40 and"):
        Processes(1, 2).check_step(40)
    Processes().check_step(40)


def test_what_torchrun_started_is_joined_and_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(
        "torch.distributed.init_process_group",
        lambda backend, timeout: calls.append(backend),
    )
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 1)
    monkeypatch.setattr(
        "torch.distributed.destroy_process_group", lambda: calls.append("left")
    )

    def train() -> None:
        with joined_processes("cpu") as (processes, device):
            assert (processes.rank, processes.count, device) == (1, 2, "cpu")
            assert not processes.leads
            raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        train()
    assert calls == ["gloo", "left"]


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(
    tmp_path: Path, corpus_file: Path, validation_file: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE + 'dtype = "float32"\n', encoding="utf-8")
    shape = tmp_path / "shape.json"
    shape.write_text(json.dumps(SHAPE), encoding="utf-8")
    command = [
        "train", recipe, "--data", corpus_file, "--validation", validation_file,
        "--config", shape, "--device", "cpu", "--threads", "1", "--no-progress",
    ]  # fmt: skip
    single = [sys.executable, "-m", "spscanner_rag.apps.cli", *command]
    torchrun = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", "2", "-m", "spscanner_rag.apps.cli", *command,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    losses = {}
    for name, words in (("one", single), ("two", torchrun)):
        out = tmp_path / name
        done = subprocess.run(
            [*map(str, words), "--out", str(out)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert (out / "model.safetensors").is_file()
        lines = (out / LOG_FILE).read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        losses[name] = [record["loss"] for record in records if "loss" in record]
    assert len(losses["two"]) == 4, "one process writes the log"
    assert losses["two"] == pytest.approx(losses["one"], abs=1e-5)
