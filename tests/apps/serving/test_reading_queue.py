"""The queue in front of the model: nothing is lost or mixed up, short jobs go first, a bad one fails alone."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag import Scanner
from spscanner_rag.apps.serving import reading_queue as module
from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.reading_queue import (
    LONG_LANES,
    LONG_PASSES,
    FairQueue,
    Job,
    Kind,
    ReadingQueue,
    Turns,
    _LaneMeter,
)
from spscanner_rag.encoder.meaning import Meaning, MeaningWeights
from spscanner_rag.encoder.sentences import SentenceVectors
from spscanner_rag.scan.pipeline import Pipeline, ScanRequest
from spscanner_rag.scorers import ScanCancelled
from tests.apps.serving.conftest import wait_until


@pytest.fixture
def queue(tiny_scanner: Scanner) -> Iterator[ReadingQueue]:
    made = ReadingQueue(tiny_scanner.pipeline, Limits())
    yield made
    made.close()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the tokens of each forward pass."""
    read: list[int] = []
    after = _LaneMeter.after_step
    monkeypatch.setattr(
        _LaneMeter, "after_step", lambda own, tokens: read.append(tokens) or after(own, tokens)
    )
    return read


def job(
    pipeline: Pipeline, *texts: str, client: str = "a", seconds: float = 60, query: str = "Who left?"
) -> Job:
    return Job([pipeline.request(query, text) for text in texts], client, seconds)


def ask(queue: ReadingQueue, *texts: str, **options: Any) -> Job:
    """Have a job read."""
    asked = job(queue.pipeline, *texts, **options)
    queue.submit(asked)
    return asked


def wait_until_idle(queue: ReadingQueue) -> None:
    """Wait until nothing waits or is read: a job gets its answer shortly before its thread counts it as done."""
    wait_until(lambda: (queue.waiting, queue._size()) == (0, 0))


def test_every_job_gets_its_own_answer(queue: ReadingQueue, tiny_scanner: Scanner) -> None:
    jobs = []
    for number in range(60):
        text = f"The keeper {number} left. It rained on day {number}." + " He came back." * (number % 7)
        texts, query = [text] * (1 + number % 3), f"Who left on day {number}?"
        jobs.append(job(queue.pipeline, *texts, client=str(number % 5), query=query))
    threads = [threading.Thread(target=queue.submit, args=(each,)) for each in jobs]
    for thread in threads:
        thread.start()
    for each in jobs:
        expected = tiny_scanner.scan_many([one[:2] for one in each.requests], together=True)
        for got, result in zip(each.future.result(30), expected, strict=True):
            np.testing.assert_allclose(got.logits, result.logits, atol=1e-4)
    wait_until_idle(queue)


def test_a_short_job_does_not_wait_for_a_long_one(queue: ReadingQueue) -> None:
    long = ask(queue, "The keeper left the island in winter. " * 30_000)
    wait_until(lambda: not queue.waiting)
    for number in range(5):
        short = ask(queue, "He left.", client=str(number))
        short.future.result(30)
        assert not long.future.done()
    long.cancel()
    with pytest.raises(ScanCancelled):
        long.future.result(30)


class Slow:
    """An encoder of many steps, between which other threads have their turn."""

    digest = "slow"

    def laid(self, sentences: Sequence[str]) -> Any:
        return SimpleNamespace(tokens=len(sentences), rows=np.eye(len(sentences), 4))

    def read(self, laid: Any, after_step: Callable[[int], None]) -> SentenceVectors:
        for _ in range(laid.tokens):
            time.sleep(2 * module.SLICE_SECONDS)
            after_step(1)
        return SentenceVectors.of(laid.rows)

    def question(self, query: str) -> NDArray[np.float32]:
        return np.eye(1, 4, dtype=np.float32)[0]


@pytest.mark.parametrize("kinds", [("long", "long"), ("short", "long"), ("long", "short")])
def test_one_text_asked_twice_at_the_same_time_is_answered_twice(
    tiny_scanner: Scanner, kinds: tuple[Kind, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    meaning = Meaning(Slow(), MeaningWeights(sentence=1))
    reading = replace(tiny_scanner.pipeline.reading, meaning=meaning)
    queue = ReadingQueue(replace(tiny_scanner.pipeline, reading=reading), Limits())
    lanes = iter(kinds)
    monkeypatch.setattr(queue, "_kind", lambda job: next(lanes))
    jobs = [ask(queue, "The keeper left. She stayed. It rained.", client=kind) for kind in "ab"]
    first, second = (each.future.result(20)[0].logits for each in jobs)
    np.testing.assert_allclose(first, second)
    ahead, after = (job(queue.pipeline, "He came back. She stayed.") for _ in range(2))
    ahead.asked, lanes = False, iter(kinds)
    queue.submit(ahead)
    assert ahead.future.result(20) == []
    monkeypatch.setattr(Slow, "read", None)  # the vectors are kept
    queue.submit(after)
    assert len(after.future.result(20)[0].logits) == 2
    queue.close()


def test_who_gives_up(queue: ReadingQueue, caplog: pytest.LogCaptureFixture, passes: list[int]) -> None:
    for text in ("He left. She stayed.", "The keeper left the island in winter. " * 30_000):  # short and long
        for _ in range(LONG_LANES):
            given_up = job(queue.pipeline, text)
            given_up.cancel()
            assert given_up.future.cancel()
            queue.submit(given_up)
        late = ask(queue, text, seconds=0)
        with pytest.raises(ScanCancelled):
            late.future.result(30)
    assert passes == []
    for text in ("He left. She stayed.", "The keeper left. " * (queue.full_characters // 17 + 2)):
        waits = ask(queue, text)
        assert len(waits.future.result(60)) == 1
    wait_until_idle(queue)
    leaves = ask(queue, "The keeper left the island in winter. " * 30_000)
    wait_until(leaves.future.running)
    leaves.future.cancel()
    leaves.cancel()
    with pytest.raises(ScanCancelled):
        leaves.future.result(30)
    assert caplog.records == []


def test_a_job_that_gets_late_while_it_is_taken_has_an_outcome(queue: ReadingQueue) -> None:
    times = iter([0.0, 0.0])  # when it is made, and when the queue first asks whether it is late
    late = Job([queue.pipeline.request("Who left?", "He left.")], "a", 60, clock=lambda: next(times, 100.0))
    queue.submit(late)
    with pytest.raises(ScanCancelled):
        late.future.result(10)


def test_a_job_that_breaks_the_model_fails_alone(
    queue: ReadingQueue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Pipeline.run

    def breaking(self: Pipeline, requests: Any, *options: Any) -> Any:
        requests = list(requests)
        if any("poison" in request.text for request in requests):
            raise RuntimeError("the model broke")
        return run(self, requests, *options)

    monkeypatch.setattr(Pipeline, "run", breaking)
    with queue._turns.held("long"):  # so that all of them are read together
        jobs = [ask(queue, text) for text in ("He left.", "It rained.", "A poison.", "She stayed.")]
        time.sleep(0.05)
    wait([each.future for each in jobs], timeout=30)
    broken = [each.future.exception() for each in jobs]
    assert [type(error) for error in broken] == [type(None), type(None), RuntimeError, type(None)]
    again = ask(queue, "He left.")
    assert len(again.future.result(30)) == 1


def test_closing_answers_what_waits_and_refuses_the_rest(tiny_scanner: Scanner) -> None:
    queue = ReadingQueue(tiny_scanner.pipeline, Limits())
    jobs = [ask(queue, "He left. " * 500, client=str(number)) for number in range(10)]
    assert queue.alive
    queue.close()
    assert not queue.alive
    assert all(each.future.done() for each in jobs)
    with pytest.raises(RefusedError) as refused:
        ask(queue, "He left.")
    assert refused.value.status_code == 503
    assert not any(thread.is_alive() for thread in queue._threads)


def test_long_jobs_read_together_have_no_more_characters_than_one_request(tiny_scanner: Scanner) -> None:
    text = "He left. " * 12_000
    queue = ReadingQueue(tiny_scanner.pipeline, Limits(request_characters=250_000))
    with queue._turns.held("long"):
        jobs = [ask(queue, text, client=str(number)) for number in range(LONG_LANES)]
        wait_until(lambda: queue.waiting == 1)
        time.sleep(0.1)
        assert queue.waiting == 1
    jobs[0].cancel()
    assert [len(each.future.result(60)) for each in jobs[1:]] == [1, 1]
    queue.close()


@pytest.mark.parametrize("limits", [{"waiting_requests": 2}, {"waiting_characters": 60}])
def test_a_full_queue_refuses_and_says_when_to_come_back(
    tiny_scanner: Scanner, limits: dict[str, int]
) -> None:
    queue = ReadingQueue(tiny_scanner.pipeline, Limits(**limits))  # type: ignore[arg-type]
    with queue._turns.held("long"):
        held = ask(queue, "He left.")
        wait_until(lambda: not queue.waiting)  # taken, but its turn does not come
        for _ in range(2):
            ask(queue, "He left.")
        with pytest.raises(RefusedError) as refused:
            ask(queue, "He left.")
    assert (refused.value.status_code, refused.value.headers) == (429, {"retry-after": "1"})
    queue.close()
    assert held.future.done()


@pytest.mark.parametrize(
    "wrong",
    [{"documents": 0}, {"seconds": float("inf")}, {"body_bytes": 1.5}, {"documents": True}, {"seconds": "1"}],
)
def test_limits_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected a (whole )?number above 0"):
        Limits(**wrong)


def test_nobody_waits_for_another_turn_after_the_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, passed = Turns(), []
    monkeypatch.setattr(turns, "pass_on", passed.append)
    meter = _LaneMeter(turns=turns, kind="short")
    meter.check()  # before a text is prepared
    meter.total = 10
    meter.after_step(6)
    assert passed == ["short"] * 2
    meter.after_step(4)
    assert passed == ["short"] * 2
    meter.check()  # before another text is prepared
    assert passed == ["short"] * 3


def test_long_jobs_in_shorter_passes_have_the_same_result(tiny_scanner: Scanner, passes: list[int]) -> None:
    pipeline = replace(tiny_scanner.pipeline, segment_tokens=64)
    queue = ReadingQueue(pipeline, Limits())
    short, long = "The keeper left. " * 8, "The keeper left the island in winter. " * 300
    try:
        for text, most in ((short, 64), (long, 64 // LONG_PASSES)):
            passes.clear()
            (got,) = ask(queue, text).future.result(30)
            assert most // 2 < max(passes) <= most
            expected = tiny_scanner.scan("Who left?", text)
            np.testing.assert_allclose(got.logits, expected.logits, atol=1e-4)
    finally:
        queue.close()


items = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), max_size=30)


def waiting(client: str, characters: int) -> Job:
    return Job([ScanRequest("", "x" * characters)], client, 60)


@settings(max_examples=50)
@given(items, st.integers(1, 100))
def test_all_come_out_once_in_order_by_client(given_items: list[tuple[str, int]], characters: int) -> None:
    queue, jobs = FairQueue(), [waiting(client, size) for client, size in given_items]
    for each in jobs:
        queue.put(each)
    assert (len(queue), queue.characters) == (len(jobs), sum(each.characters for each in jobs))
    out: list[Job] = []
    while len(queue):
        taken = queue.take(characters)
        assert taken
        assert sum(each.characters for each in taken[:-1]) < characters
        out += taken
    assert queue.characters == 0
    assert queue.take(characters) == []
    for client in "abc":
        assert [one for one in out if one.client == client] == [one for one in jobs if one.client == client]


def test_a_client_with_many_requests_does_not_hold_up_another() -> None:
    queue = FairQueue()
    for client in ("greedy",) * 100 + ("modest",):
        queue.put(waiting(client, 10))
    assert [each.client for each in queue.take(20)] == ["greedy", "modest"]


@pytest.fixture
def no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are passed on whenever that is asked for."""
    monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)


def test_a_turn_that_has_just_begun_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_SECONDS", 3600.0)
    turns, taken = Turns(), threading.Event()

    def take() -> None:
        with turns.held("short"):
            taken.set()

    with turns.held("long"):
        thread = threading.Thread(target=take)
        thread.start()
        wait_until(lambda: bool(turns._waiting["short"]))
        turns.pass_on("long")
        assert not taken.is_set()
        turns._since -= 3600.0
        turns.pass_on("long")
        assert taken.is_set()
    thread.join(5)


@pytest.mark.usefixtures("no_slice")
def test_only_one_thread_holds_the_turn() -> None:
    turns, inside, most = Turns(), 0, 0

    def work(kind: Kind) -> None:
        nonlocal inside, most
        for _ in range(50):
            with turns.held(kind):
                inside += 1
                most = max(most, inside)
                time.sleep(0)  # another thread would come in
                inside -= 1
                turns.pass_on(kind)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in ("short", "long", "long")]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert (most, turns._held) == (1, False)


@pytest.mark.usefixtures("no_slice")
def test_short_work_goes_first_after_a_turn_of_long_work() -> None:
    turns, order, threads = Turns(), [], []

    def take(kind: Kind, name: str) -> None:
        with turns.held(kind):
            order.append(name)

    with turns.held("long"):
        for kind, name in (("long", "second long"), ("short", "short")):
            thread = threading.Thread(target=take, args=(kind, name))
            thread.start()
            wait_until(lambda kind=kind: bool(turns._waiting[kind]))  # type: ignore[misc]
            threads.append(thread)
        turns.pass_on("long")
        order.append("first long goes on")
    for thread in threads:
        thread.join(5)
    assert order == ["short", "second long", "first long goes on"]
