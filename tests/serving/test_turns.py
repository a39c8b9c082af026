"""Turns: one thread at a time, short and long work alternate, first come first served within a kind."""

import threading
import time

from spscanner_rag.serving.turns import Kind, Turns


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
