"""The load on the servers: what its clients see, and which bounds are missed."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spscanner_lab.benchmarks import soak
from spscanner_lab.benchmarks.soak import (
    Load,
    Seen,
    _address_in,
    _children_named,
    _loaded,
    _long_text,
    _megabytes,
    _processor_seconds,
)

LOAD = Load(seconds=1.0, long_sentences=6, pause=0.02)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="reads /proc"
)


@pytest.fixture
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_LEFT_SECONDS", 0.01)
    monkeypatch.setattr(soak, "_LEAST_PAUSE", 0.01)
    monkeypatch.setattr("random.uniform", lambda low, high: low / 10)


def seen_of(**values: object) -> Seen:
    seen = Seen(alone=[0.1] * 20, beside=[0.2] * 20, memory=[100.0] * 8)
    for name, value in values.items():
        setattr(seen, name, value)
    return seen


def test_a_flat_quick_and_right_server_is_within_its_bounds() -> None:
    seen = seen_of(processor_seconds=4.0)
    seen.counts["asked"] = 20
    rows, holds = seen.rows("serve")
    assert holds
    assert rows["serve: p95 beside long ones, in times alone"] == 2
    assert rows["serve: memory, in times that of the second quarter"] == 1
    assert rows["serve: megabytes more in an hour, second half"] == pytest.approx(
        0, abs=1e-6
    )
    assert rows["serve: cores used"] == 0.5


@pytest.mark.parametrize(
    "values",
    [
        {"beside": [0.1] * 10 + [0.4] * 10},
        {"memory": [100.0] * 6 + [112.0] * 2},
    ],
)
def test_what_is_slow_or_grows_misses_its_bound(values: dict[str, object]) -> None:
    _, holds = seen_of(**values).rows("serve")
    assert not holds


@pytest.mark.parametrize("kind", ["wrong", "not refused"])
def test_one_wrong_answer_misses_the_bound(kind: str) -> None:
    seen = seen_of()
    seen.counts[kind] = 1
    assert not seen.rows("serve")[1]


def test_growth_is_told_for_an_hour() -> None:
    seen = seen_of(memory=[100.0, 100.0, 100.0, 101.0, 102.0, 103.0])
    rows, _ = seen.rows("mcp")
    assert rows["mcp: megabytes more in an hour, second half"] == pytest.approx(3600)
    assert seen_of(memory=[100.0]).rows("mcp")[1]


def test_a_long_text_has_its_keeper_once() -> None:
    text, keeper = _long_text(LOAD)
    assert text.count(keeper) == 1
    assert text.count("It rained") == 6


@needs_proc
@pytest.mark.usefixtures("_no_long_pauses")
def test_clients_of_all_kinds_come_and_are_counted() -> None:
    async def ask(text: str) -> str:
        await asyncio.sleep(0.005)
        return text

    async def refuse(text: str) -> str:
        return ""

    seen = asyncio.run(_loaded(os.getpid(), ask, refuse, LOAD))
    assert seen.counts["wrong"] == seen.counts["not refused"] == 0
    for kind in ("asked", "asked long", "cancelled", "refused"):
        assert seen.counts[kind] > 0, kind
    assert seen.alone
    assert seen.memory[0] > 10
    assert seen.long_questions == 0


@needs_proc
@pytest.mark.usefixtures("_no_long_pauses")
def test_a_server_that_mixes_texts_up_and_believes_lies_is_found_out() -> None:
    async def ask(text: str) -> str:
        await asyncio.sleep(0.005)
        return "It rained."

    async def believe(text: str) -> str:
        return "an answer"

    seen = asyncio.run(_loaded(os.getpid(), ask, believe, LOAD))
    assert seen.counts["wrong"] >= seen.counts["asked"] > 0
    assert seen.counts["not refused"] > 0
    assert seen.counts["refused"] == 0


@needs_proc
def test_a_process_is_measured_and_found_by_its_argument(tmp_path: Path) -> None:
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    command = [sys.executable, "-S", "-c", program, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert process.pid in _children_named(str(tmp_path))
        assert _megabytes(process.pid) > 1
        assert _processor_seconds(process.pid) >= 0
        process.communicate()
    assert _children_named(str(tmp_path)) == []


def test_the_address_is_that_of_the_log_or_the_server_has_ended() -> None:
    with tempfile.TemporaryFile() as log:
        program = "import sys; sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE
        ) as process:
            log.write(b"ready\nUvicorn running on http://127.0.0.1:81 (quit)\n")
            assert _address_in(log, process) == "http://127.0.0.1:81"
            process.communicate()
        with pytest.raises(RuntimeError, match="the server has ended"):
            _address_in(log, process)
