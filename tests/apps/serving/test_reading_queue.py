"""The queue in front of the model.

Nothing is lost or mixed up, short jobs go first, and a bad job fails alone.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.reading_queue import (
    LONG_PASSES,
    Job,
    ReadingQueue,
    _SharedMeter,
)
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_encoder import Step
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scorers import ScanCancelled
from tests.apps.serving.conftest import wait_until

LONG = "The keeper left the island in winter. " * 30_000


@pytest.fixture
def queue(tiny_scanner: Scanner) -> Iterator[ReadingQueue]:
    made = ReadingQueue(tiny_scanner.pipeline, Limits())
    yield made
    made.close()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the tokens of each forward pass."""
    read: list[int] = []
    after = _SharedMeter.after_step
    monkeypatch.setattr(
        _SharedMeter,
        "after_step",
        lambda own, tokens: read.append(tokens) or after(own, tokens),
    )
    return read


def job(
    pipeline: Pipeline,
    *texts: str,
    client: str = "a",
    seconds: float = 60,
    query: str = "Who left?",
    **kept: Any,
) -> Job:
    requests = [pipeline.request(query, text) for text in texts]
    return Job(requests, client, time.monotonic() + seconds, **kept)


def ask(queue: ReadingQueue, *texts: str, **options: Any) -> Job:
    """Have the service read a job."""
    asked = job(queue.pipeline, *texts, **options)
    queue.submit(asked)
    return asked


@contextmanager
def held(queue: ReadingQueue) -> Iterator[Job]:
    """Hold the queue at a job until the block ends, so that later requests wait."""
    begun, over = threading.Event(), threading.Event()
    holding = ask(queue, "He left.", progress=lambda *_: begun.set() or over.wait(30))
    assert begun.wait(30)
    try:
        yield holding
    finally:
        over.set()


def wait_until_idle(queue: ReadingQueue) -> None:
    """Wait until no job waits or is read.

    A job gets its answer shortly before its thread counts it as done.
    """
    wait_until(lambda: (queue.waiting, queue.characters) == (0, 0))


def test_every_job_gets_its_own_answer(
    queue: ReadingQueue, tiny_scanner: Scanner
) -> None:
    jobs = []
    for number in range(60):
        text = (
            f"The keeper {number} left. It rained on day {number}."
            + " He came back." * (number % 7)
        )
        texts, query = [text] * (1 + number % 3), f"Who left on day {number}?"
        jobs.append(job(queue.pipeline, *texts, client=str(number % 5), query=query))
    threads = [threading.Thread(target=queue.submit, args=(each,)) for each in jobs]
    for thread in threads:
        thread.start()
    for each in jobs:
        expected = tiny_scanner.scan_many(
            [one[:2] for one in each.requests], together=True
        )
        for got, result in zip(each.future.result(30), expected, strict=True):
            np.testing.assert_allclose(got.logits, result.logits, atol=1e-4)
    wait_until_idle(queue)


def test_a_smaller_job_does_not_wait_for_a_long_one(
    queue: ReadingQueue, passes: list[int]
) -> None:
    long = ask(queue, LONG)
    wait_until(lambda: not queue.waiting)
    like = ask(queue, LONG, client="like")
    middling = "The keeper left. " * (queue.full_characters // 17 + 2)
    for number, text in enumerate(["He left."] * 5 + [middling]):
        before = len(passes)
        smaller = ask(queue, text, client=str(number))
        smaller.future.result(30)
        assert len(passes) > before
        assert not long.future.done()
    assert queue.waiting == 1
    for each in (long, like):
        each.cancel()
        with pytest.raises(ScanCancelled):
            each.future.result(30)


def test_a_long_job_goes_on_for_as_long_as_it_was_interrupted() -> None:
    read: list[int] = []
    meter = _SharedMeter(
        others=lambda largest: read.append(largest) or time.sleep(0.05), largest=7
    )
    meter.check()
    meter.check()
    assert read == [7]
    time.sleep(meter.lasted)
    meter.after_step(1)
    assert read == [7, 7]


class Slow:
    """An encoder that takes many steps, between which other jobs are read."""

    digest = "slow"

    def __init__(self) -> None:
        self.begun = threading.Event()

    def vectors(
        self, sentences: Sequence[str], before: Step, after_step: Step
    ) -> SentenceVectors:
        before(len(sentences))
        self.begun.set()
        for _ in sentences:
            time.sleep(0.002)
            after_step(1)
        return SentenceVectors.of(np.eye(len(sentences), 4))

    def question(self, query: str) -> NDArray[np.float32]:
        return np.eye(1, 4, dtype=np.float32)[0]


def test_a_text_that_is_asked_while_it_is_encoded(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    meaning = Meaning(slow := Slow(), MeaningWeights(sentence=1))
    reading = replace(tiny_scanner.pipeline.reading, meaning=meaning)
    queue = ReadingQueue(replace(tiny_scanner.pipeline, reading=reading), Limits())
    text = "The keeper left. She stayed. It rained. " * 60
    long = ask(queue, text, *[LONG[:90_000]] * 4, together=False)
    assert slow.begun.wait(20)
    short = ask(queue, text, client="b")
    again = short.future.result(20)[0].logits
    assert not long.future.done()
    np.testing.assert_allclose(long.future.result(60)[0].logits, again, atol=1e-4)
    again_asked = "He came back. She stayed."

    def prepare(meter: Meter, pipeline: Pipeline) -> PreparedDocument:
        return pipeline.reading.prepare(again_asked, None, meter)

    prepared = ask(queue, again_asked, work=prepare).future.result(20)
    assert len(prepared.units) == 2
    monkeypatch.setattr(Slow, "vectors", None)  # the vectors are kept
    assert len(ask(queue, again_asked).future.result(20)[0].logits) == 2
    queue.close()


def test_who_gives_up(
    queue: ReadingQueue, caplog: pytest.LogCaptureFixture, passes: list[int]
) -> None:
    for text in ("He left. She stayed.", LONG):
        given_up = job(queue.pipeline, text)
        given_up.cancel()
        assert given_up.future.cancel()
        queue.submit(given_up)
        late = ask(queue, text, seconds=0)
        with pytest.raises(ScanCancelled):
            late.future.result(30)
    assert passes == []
    assert len(ask(queue, "He left. She stayed.").future.result(60)) == 1
    wait_until_idle(queue)
    leaves = ask(queue, LONG)
    wait_until(leaves.future.running)
    leaves.future.cancel()
    leaves.cancel()
    with pytest.raises(ScanCancelled):
        leaves.future.result(30)
    assert caplog.records == []


def test_a_job_that_breaks_the_model_fails_alone(
    queue: ReadingQueue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    planned = Pipeline.planned

    def breaking(self: Pipeline, requests: Any, *rest: Any, **options: Any) -> Any:
        if any("poison" in request.text for request in requests):
            raise RuntimeError("the model broke")
        return planned(self, requests, *rest, **options)

    monkeypatch.setattr(Pipeline, "planned", breaking)
    with held(queue):  # so that all are read together
        jobs = [
            ask(queue, text)
            for text in ("He left.", "It rained.", "A poison.", "She stayed.")
        ]
    wait([each.future for each in jobs], timeout=30)
    broken = [each.future.exception() for each in jobs]
    assert [type(error) for error in broken] == [
        type(None),
        type(None),
        RuntimeError,
        type(None),
    ]
    again = ask(queue, "He left.")
    assert len(again.future.result(30)) == 1


def test_a_job_larger_than_all_that_may_wait_is_read_when_nothing_else_does(
    tiny_scanner: Scanner,
) -> None:
    queue = ReadingQueue(tiny_scanner.pipeline, Limits(waiting_characters=5))
    try:
        for _ in range(2):  # and does not block the next one
            assert len(ask(queue, "He left the island.").future.result(timeout=20)) == 1
            wait_until_idle(queue)
    finally:
        queue.close()


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


@pytest.mark.parametrize(
    "limits", [{"waiting_requests": 2}, {"waiting_characters": 60}]
)
def test_a_full_queue_refuses_and_says_when_to_come_back(
    tiny_scanner: Scanner, limits: dict[str, int]
) -> None:
    queue = ReadingQueue(tiny_scanner.pipeline, Limits(**limits))  # type: ignore[arg-type]
    with held(queue):
        for _ in range(2):
            ask(queue, "He left.")
        with pytest.raises(RefusedError) as refused:
            ask(queue, "He left.")
    assert (refused.value.status_code, refused.value.headers) == (
        429,
        {"retry-after": "1"},
    )
    queue.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"documents": 0},
        {"seconds": float("inf")},
        {"body_bytes": 1.5},
        {"documents": True},
        {"seconds": "1"},
    ],
)
def test_limits_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected a (whole )?number above 0"):
        Limits(**wrong)


def test_long_jobs_in_shorter_passes_have_the_same_result(
    tiny_scanner: Scanner, passes: list[int]
) -> None:
    pipeline = replace(tiny_scanner.pipeline, segment_tokens=64)
    queue = ReadingQueue(pipeline, Limits())
    short, long = (
        "The keeper left. " * 8,
        "The keeper left the island in winter. " * 300,
    )
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


@settings(max_examples=50, deadline=None)
@given(items, st.integers(1, 100))
def test_all_come_out_once_in_order_by_client(
    tiny_scanner: Scanner, given_items: list[tuple[str, int]], full: int
) -> None:
    queue = ReadingQueue(tiny_scanner.pipeline, Limits())
    queue.full_characters = full
    jobs = [
        Job([ScanRequest("", "x" * size)], client, 60.0) for client, size in given_items
    ]
    for each in jobs:
        queue._jobs.setdefault(each.client, []).append(each)
    out: list[Job] = []
    while taken := queue._take(50):
        sizes = [each.characters for each in taken]
        assert sum(sizes[:-1]) < full
        assert len(sizes) == 1 or max(sizes) <= full
        out += taken
    assert len(out) == len(jobs)
    for client in "abc":
        for kind in (True, False):
            assert [
                one
                for one in out
                if one.client == client and (one.characters > full) == kind
            ] == [
                one
                for one in jobs
                if one.client == client and (one.characters > full) == kind
            ]
    queue.close()


def test_a_client_with_many_requests_does_not_hold_up_another(
    queue: ReadingQueue,
) -> None:
    with held(queue):
        greedy = [
            ask(queue, "The keeper left. " * 900, client="greedy") for _ in range(30)
        ]
        modest = ask(queue, "He left.", client="modest")
    modest.future.result(30)
    assert not greedy[-1].future.done()
