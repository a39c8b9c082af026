"""Turns: one thread at a time, short and long work alternate, first come first served within a kind."""

import threading
import time

import pytest

from spscanner_rag.apps.serving import reading_queue as turns_module
from spscanner_rag.apps.serving.reading_queue import Kind, Turns


@pytest.fixture(autouse=True)
def no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are passed on whenever that is asked for."""
    monkeypatch.setattr(turns_module, "SLICE_SECONDS", 0.0)


def test_a_turn_that_has_just_begun_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "SLICE_SECONDS", 3600.0)
    turns, taken = Turns(), threading.Event()

    def take() -> None:
        with turns.held("short"):
            taken.set()

    with turns.held("long"):
        thread = threading.Thread(target=take)
        thread.start()
        while not turns._waiting["short"]:
            time.sleep(0.001)
        turns.pass_on("long")
        assert not taken.is_set()
        turns._since -= 3600.0
        turns.pass_on("long")
        assert taken.is_set()
    thread.join(5)


def test_only_one_thread_holds_the_turn() -> None:
    turns, inside, most = Turns(), 0, 0

    def work(kind: Kind) -> None:
        nonlocal inside, most
        for _ in range(50):
            with turns.held(kind):
                inside += 1
                most = max(most, inside)
                turns_passed = inside  # another thread would change it
                time.sleep(0)
                assert turns_passed == inside
                inside -= 1
                turns.pass_on(kind)
                inside += 1
                inside -= 1

    threads = [threading.Thread(target=work, args=(kind,)) for kind in ("short", "long", "long")]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 1


def test_short_work_goes_first_after_a_turn_of_long_work() -> None:
    turns, order = Turns(), []
    waiting = threading.Semaphore(0)

    def take(kind: Kind, name: str) -> None:
        waiting.release()
        with turns.held(kind):
            order.append(name)

    with turns.held("long"):
        threads = []
        for kind, name in (("long", "second long"), ("short", "short")):
            thread = threading.Thread(target=take, args=(kind, name))
            thread.start()
            waiting.acquire()
            while not turns._waiting[kind]:  # type: ignore[index]
                time.sleep(0.001)
            threads.append(thread)
        turns.pass_on("long")
        order.append("first long goes on")
    for thread in threads:
        thread.join(5)
    assert order == ["short", "second long", "first long goes on"]


def test_passing_on_when_nobody_waits_changes_nothing() -> None:
    turns = Turns()
    with turns.held("short"):
        turns.pass_on("short")
        assert turns._held
    assert not turns._held
