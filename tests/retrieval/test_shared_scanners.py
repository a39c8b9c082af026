"""Scanners loaded once for equal arguments."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint import CheckpointError
from spscanner_rag.retrieval import shared_scanners
from spscanner_rag.retrieval.shared_scanners import shared_scanner
from spscanner_rag.scanner import Scanner
from tests.retrieval.searching import forget_shared_scanners

SECRET = "hf_not_to_be_shown"


class Loads:
    """Stands in for `Scanner.from_pretrained`, and counts its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, dict[str, Any]]] = []
        self.fails = 0
        self.wait = threading.Event()
        self.wait.set()

    def __call__(self, model: object = None, **options: Any) -> object:
        self.calls.append((model, options))
        assert self.wait.wait(20)
        if len(self.calls) <= self.fails:
            raise CheckpointError("not there")
        return object()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loads]:
    forget_shared_scanners()
    stand_in = Loads()
    monkeypatch.setattr(Scanner, "from_pretrained", stand_in)
    yield stand_in
    forget_shared_scanners()


def test_others_load_beside_one_that_takes_long(loads: Loads) -> None:
    loads.wait.clear()
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(shared_scanner, name) for name in ("a", "b")]
        while len(loads.calls) < 2:  # both are loading: neither waits for the other
            assert not any(future.done() for future in waiting)
        loads.wait.set()
        assert waiting[0].result() is not waiting[1].result()


def test_what_failed_is_tried_again(loads: Loads) -> None:
    loads.fails = 2
    for _ in range(2):
        with pytest.raises(CheckpointError):
            shared_scanner("a")
    assert shared_scanner("a") is shared_scanner("a")
    assert len(loads.calls) == 3


def test_arguments_that_differ_load_apart(loads: Loads) -> None:
    tokenizer = [1]  # unhashable
    arguments: list[dict[str, Any]] = [
        {},
        {"model": "None"},
        {"model": "a"},
        {"model": Path("a")},  # never a Hub id
        {"model": "a", "device": "cpu"},
        {"model": "a", "segment_tokens": 1},
        {"model": "a", "segment_tokens": True},
        {"model": "a", "segment_tokens": 1.0},
        {"model": "a", "segment_tokens": None},
        {"model": "a", "revision": "None"},
        {"model": "a", "tokenizer": tokenizer},
        {"model": "a", "tokenizer": [1]},
        {"model": "a", "token": SECRET},
        {"model": "a", "device": torch.device("cpu")},
        {"model": "a", "dtype": torch.float32},
    ]
    scanners = [shared_scanner(**given) for given in arguments]
    assert len(set(scanners)) == len(loads.calls) == len(arguments)
    arguments[-2]["device"] = torch.device("cpu")  # equal to the first
    assert [shared_scanner(**given) for given in arguments] == scanners
    assert len(loads.calls) == len(arguments)
    assert loads.calls[10][1]["tokenizer"] is tokenizer


def test_objects_made_anew_are_never_taken_for_old_ones(loads: Loads) -> None:
    scanners = {
        shared_scanner("a", tokenizer=[number]) for number in range(50)
    }  # freed, except for the key
    assert len(scanners) == 50


def test_a_local_folder_by_full_path(
    loads: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for parent in ("one", "two"):
        (tmp_path / parent / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one")
    first = shared_scanner("model")
    assert (
        shared_scanner(Path("model"))
        is shared_scanner(tmp_path / "one" / "model")
        is first
    )
    monkeypatch.chdir(tmp_path / "two")
    assert shared_scanner("model") is not first
    assert [model for model, _ in loads.calls] == [
        "model",
        "model",
    ]  # as given, since messages name it so


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_lock_that_was_held_is_free_in_a_fork(loads: Loads) -> None:
    key_lock = threading.Lock()
    shared_scanner("a")
    (key,) = shared_scanners._locks
    shared_scanners._locks[key] = key_lock
    with key_lock:
        shared_scanners._forget_locks()  # runs in a fork
        assert shared_scanner("a") is shared_scanner("a")
