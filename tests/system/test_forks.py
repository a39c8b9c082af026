"""A scanner answers in a forked child.

Each test forks in a separate program, so that a hang ends with it.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from spscanner_rag.system import forks
from spscanner_rag.system.threads import use_threads

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

NOVEL = Path(__file__).parents[2] / "examples" / "data" / "persuasion.txt"
PATIENCE = 60  # seconds; a child answers in less than ten

COMMON = f"""
import multiprocessing, os, sys
import torch
import numpy as np

from spscanner_rag.system import threads

torch.set_num_threads(2)  # also on a machine with one core,
threads.usable_cores = lambda: 2  # where a scanner would otherwise lower the number
fork = multiprocessing.get_context("fork")


def text():
    with open({str(NOVEL)!r}, encoding="utf-8") as novel:
        return novel.read()[:4000]


def answer(work):
    receiving, sending = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: sending.send(work()))
    child.start()
    sending.close()  # a child that fails is then read as EOFError, at once
    found = receiving.recv() if receiving.poll({PATIENCE}) else "hang"
    child.kill()
    child.join()
    return found


def computes():
    torch.ones(2**21).exp()
"""


def run(program: str, *arguments: object, python: str = COMMON) -> str:
    """What a program prints; fails if the program does."""
    command = [
        sys.executable,
        "-W",
        "error::RuntimeWarning",
        "-c",
        python + dedent(program),
        *map(str, arguments),
    ]
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "TQDM_DISABLE": "1"}
    environment.pop("OMP_NUM_THREADS", None)
    done = subprocess.run(
        command, timeout=4 * PATIENCE, capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_a_child_scans_as_its_parent() -> None:
    run("""
    from spscanner_rag import Scanner

    scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
    def scan():
        return scanner.scan("Who is Sir Walter?", text()).logits

    only_loaded = answer(scan)
    expected = scan()
    # the last is a child of a child
    for found in (only_loaded, answer(scan), answer(lambda: answer(scan))):
        assert not isinstance(found, str), found
        assert np.abs(found - expected).max() < 1e-5
    assert torch.get_num_threads() == 2
    assert np.array_equal(scan(), expected)  # the parent goes on as before

    def scan_with_two_threads():
        scanner = Scanner.from_pretrained(device="cpu", dtype="float32", threads=2)
        result = scanner.scan("Who is Sir Walter?", text())
        return result.logits, torch.get_num_threads()

    assert scan_with_two_threads()[1] == 2
    found, threads = answer(scan_with_two_threads)
    assert threads == 1
    assert np.abs(found - expected).max() < 1e-5
    """)


@pytest.mark.slow
def test_a_child_scans_beside_its_event_loop() -> None:
    run("""
    import asyncio
    from spscanner_rag.retrieval.worker_threads import off_loop
    from spscanner_rag.retrieval.shared_scanners import shared_scanner

    def scan():
        scanner = shared_scanner(None, device="cpu", dtype="float32")
        def scan(cancelled):
            return scanner.scan("Who is Sir Walter?", text(), cancelled=cancelled)

        waiting = off_loop(scan)
        async def main():
            return await waiting
        return asyncio.run(main()).logits

    expected, found = scan(), answer(scan)
    assert not isinstance(found, str), found
    assert np.abs(found - expected).max() < 1e-5
    """)


def test_one_thread_stays_one_thread_and_other_systems_need_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(forks, "_computes_alone", False)
    monkeypatch.setattr(torch, "set_num_threads", calls.append)
    for threads, expected in ((1, []), (3, [1])):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        forks._compute_alone()
        assert calls == expected
    registered: list[Any] = []
    monkeypatch.setattr(
        os, "register_at_fork", lambda **hooks: registered.append(hooks)
    )
    forks.compute_in_forks.__wrapped__()
    assert registered == [{"after_in_child": forks._compute_alone}]
    monkeypatch.delattr(os, "register_at_fork")
    forks.compute_in_forks.__wrapped__()
    assert len(registered) == 1


def test_a_forked_child_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(forks, "_computes_alone", False)
    forks._compute_alone()
    assert use_threads(4) == 1 == torch.get_num_threads()
    torch.set_num_threads(before)
