"""Programs that are killed, or run out of room, at any moment.

They lose no finished work, and resume.

Each program is a fork of the tests, which have imported everything, so that its time is
that of its work.
"""

import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tqdm.auto

from spscanner_rag.apps.cli import main
from spscanner_rag.system.folder_lock import folder_lock
from spscanner_rag.system.json_lines import complete_lines
from tests.command_line import write_lines
from tests.lab.training.conftest import RECIPE as SMALL
from tests.lab.training.conftest import SHAPE, corpus_lines

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork"),
]

RECIPE = (
    f'{SMALL.replace("steps = 4", "steps = 6")}keep_best = true\ndtype = "float32"\n'
)
MEASURED = {
    "seconds",
    "seconds_computing",
    "peak_megabytes",
    "hours",
    "tokens_per_second",
    "config",
}
"""Fields that depend on the machine; "config" is the digest of a file that contains
the hours."""

Command = Callable[[Path], list[object]]


class Program:
    """A command in a separate process.

    ``log`` gets what it writes on standard error.
    """

    def __init__(
        self,
        arguments: list[object],
        log: Path,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        self.log, self.begun = log, time.perf_counter()
        self.process = os.fork()
        if self.process == 0:
            code = 99
            try:
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115
                sys.stderr = log.open("w", encoding="utf-8")
                # tqdm's lock is shared by all forks, and a fork that is killed while
                # holding it keeps it
                for bars in (tqdm.std.tqdm, tqdm.auto.tqdm):
                    bars.set_lock(threading.RLock())
                before()
                code = main([str(argument) for argument in arguments])
                sys.stderr.flush()
            finally:
                os._exit(code)

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)

    def finish(self) -> tuple[int, str, float]:
        """Exit code, output on standard error, and seconds."""
        try:
            _, status = os.waitpid(self.process, 0)
        except BaseException:  # such as the time limit of a test
            self.kill()
            raise
        return (
            os.waitstatus_to_exitcode(status),
            self.log.read_text(encoding="utf-8"),
            time.perf_counter() - self.begun,
        )


EXPECTED: dict[str, object] = {}
"""The results of each command when nothing goes wrong."""


@pytest.fixture(autouse=True)
def _imported(evaluating: Command, training: Command, tmp_path: Path) -> None:
    """Run each command once in this process, so that its forks import nothing."""
    if EXPECTED:
        return
    for name, command in (("evaluating", evaluating), ("training", training)):
        assert main([str(argument) for argument in command(tmp_path / name)]) == 0
    EXPECTED.update(
        {name: outcome(tmp_path / name) for name, outcome in OUTCOMES.items()}
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "data.jsonl", *corpus_lines("walks", 4), *corpus_lines("roads", 4, 4)
    )


@pytest.fixture
def evaluating(data: Path) -> Command:
    return lambda out: [
        "eval",
        data,
        "--retrievers",
        "bm25",
        "--unit",
        "sentence,chunk",
        "--out",
        out,
    ]


@pytest.fixture
def training(data: Path, tmp_path: Path) -> Command:
    recipe, shape = (
        tmp_path / "recipe.toml",
        write_lines(tmp_path / "shape.json", SHAPE),
    )
    recipe.write_text(RECIPE)
    dev = write_lines(tmp_path / "dev.jsonl", *corpus_lines("rivers", 1, 50))
    return lambda out: [
        "train",
        recipe,
        "--config",
        shape,
        "--data",
        data,
        "--validation",
        dev,
        "--out",
        out,
    ]


def unmeasured(value: Any) -> Any:
    """JSON without what depends on the machine."""
    if isinstance(value, dict):
        return {
            name: unmeasured(part)
            for name, part in value.items()
            if name not in MEASURED
        }
    return [unmeasured(part) for part in value] if isinstance(value, list) else value


def evaluated(out: Path) -> object:
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    rows = [
        row
        for row in json.loads((out / "results.json").read_bytes())
        if row["metric"] not in MEASURED
    ]
    records = sorted(
        json.dumps(unmeasured(json.loads(line)))
        for _, line in complete_lines(out / "records.jsonl")
    )
    return json.loads((out / "run.json").read_bytes()), rows, records


def trained(out: Path) -> object:
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    lines = [
        json.dumps(unmeasured(json.loads(line)))
        for _, line in complete_lines(out / "log.jsonl")
    ]
    log = list(
        dict.fromkeys(lines)
    )  # a run that was killed after its last validation repeats it
    config = unmeasured(json.loads((out / "config.json").read_bytes()))
    return (
        config,
        log,
        *(
            (out / name).read_bytes()
            for name in ("model.safetensors", "tokenizer.json")
        ),
    )


OUTCOMES: dict[str, Callable[[Path], object]] = {
    "evaluating": evaluated,
    "training": trained,
}


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_killed_run_goes_on_to_the_same_end(
    tmp_path: Path, name: str, times: int, request: pytest.FixtureRequest
) -> None:
    """Kills at random moments, each in a separate folder."""
    command, log, draw = (
        request.getfixturevalue(name),
        tmp_path / "log",
        random.Random(0),
    )
    code, error, seconds = Program(command(tmp_path / "whole"), log).finish()
    assert code == 0, error
    for number in range(times):
        out = tmp_path / f"killed-{number}"
        program = Program(command(out), log)
        time.sleep(draw.uniform(0, seconds))
        program.kill()
        code, error, _ = Program(command(out), log).finish()
        assert code == 0, error
        assert OUTCOMES[name](out) == EXPECTED[name]


def limited(size: int) -> Callable[[], object]:
    """Limit the size of a program's files, as a full disk does."""
    return lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)
    )


@pytest.mark.parametrize(
    ("name", "size", "full"),
    [
        ("evaluating", 8000, "records.jsonl"),
        ("evaluating", 64_000, "results.json"),
        ("training", 4000, ""),  # the texts of documents, in a file without a name
        ("training", 40_000, "training_state.pt"),
    ],
)
def test_a_full_disk_is_one_line_and_what_was_finished_stays(
    tmp_path: Path, name: str, size: int, full: str, request: pytest.FixtureRequest
) -> None:
    command, out = request.getfixturevalue(name), tmp_path / "out"
    code, error, _ = Program(command(out), tmp_path / "log", limited(size)).finish()
    assert code == 2, error
    assert (
        f"spscanner: {out / full}: cannot be written (File too large); what it held"
        " before is" in error
    )
    records = len(list(complete_lines(out / "records.jsonl")))
    assert (records > 0) == (full in ("records.jsonl", "results.json"))
    code, error, _ = Program(command(out), tmp_path / "log").finish()
    assert code == 0, error
    assert (
        f"found {records:,} records of an earlier run, which are kept" in error
    ) == (records > 0)
    assert OUTCOMES[name](out) == EXPECTED[name]


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_second_of_two_runs_is_refused(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    command, out = request.getfixturevalue(name), tmp_path / "out"
    code, error, _ = Program(command(out), tmp_path / "log", limited(40_000)).finish()
    assert code == 2, error
    with folder_lock(out):
        before = {
            path.name: path.read_bytes() for path in out.iterdir() if path.is_file()
        }
        code, error, _ = Program(command(out), tmp_path / "other").finish()
        assert (code, error.count("\n")) == (2, 1)
        assert f"{out}: in use by another run" in error
        assert {
            path.name: path.read_bytes() for path in out.iterdir() if path.is_file()
        } == before
