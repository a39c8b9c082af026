"""Forked children compute with one thread: what is registered, and when. `tests/test_forks.py` forks."""

import os
from typing import Any

import pytest

from spscanner_rag.mamba2 import forks
from spscanner_rag.scanner import Scanner


def test_one_thread_stays_one_thread_and_other_systems_need_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(forks, "_alone", False)
    monkeypatch.setattr(forks.torch, "set_num_threads", calls.append)
    for threads, expected in ((1, []), (3, [1])):
        monkeypatch.setattr(forks.torch, "get_num_threads", lambda threads=threads: threads)
        forks._compute_alone()
        assert calls == expected
    registered: list[Any] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: registered.append(hooks))
    forks.compute_in_forks.__wrapped__()
    assert registered == [{"after_in_child": forks._compute_alone}]
    monkeypatch.delattr(os, "register_at_fork")
    forks.compute_in_forks.__wrapped__()
    assert len(registered) == 1


def test_registered_once(tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[Any] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: registered.append(hooks))
    tiny_scanner.scan("who signed", "He signed it. It rained.")
    tiny_scanner.scan("who signed", "He signed it. It rained.")
    assert registered == []  # when the scanner was loaded
