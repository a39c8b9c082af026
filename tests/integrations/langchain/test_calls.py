"""Arguments of a call, events, and asynchronous calls."""

import asyncio
import contextvars
import logging
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from langchain_spscanner import SPScannerRetriever
from spscanner_rag.retrieval import shared_scanners
from spscanner_rag.scanner import Scanner
from tests.integrations.event_loop import EventLoop

QUERY = "Who signed the treaty?"


def call(retriever: Any, asynchronous: bool, *args: Any, **kwargs: Any) -> Any:
    return (
        asyncio.run(retriever.ainvoke(*args, **kwargs)) if asynchronous else retriever.invoke(*args, **kwargs)
    )


class Stage(BaseRetriever):
    """A first stage that notes how it was called."""

    found: list[Document]
    seen: list[str]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.seen.append("sync")
        return self.found

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.seen.append("async")
        return self.found


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asynchronous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_arguments_of_a_call(word_scorer: Any, documents: list[Document], asynchronous: bool) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    assert len(call(retriever, asynchronous, QUERY)) == 10
    assert len(call(retriever, asynchronous, QUERY, k=3)) == 3
    assert len(call(retriever, asynchronous, QUERY, None, k=1)) == 1
    assert 0 < len(call(retriever, asynchronous, QUERY, threshold=0.5)) < 10
    counted = retriever.model_copy(update={"count_tokens": len})
    assert sum(len(d.page_content) for d in call(counted, asynchronous, QUERY, max_tokens=99)) <= 99
    assert len(call(retriever, asynchronous, QUERY, verbose=False, k=2)) == 2  # the framework's argument
    assert len(call(retriever.bind(k=4), asynchronous, QUERY)) == 4


def test_an_unknown_argument_is_named(
    word_scorer: Any, documents: list[Document], events: Any, asynchronous: bool
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    with pytest.raises(TypeError, match="unknown argument 'top_k'; expected one of k, threshold, max_tokens"):
        call(retriever, asynchronous, QUERY, {"callbacks": [events]}, top_k=3)
    assert (events.seen, word_scorer.calls) == ([], 0)


@pytest.mark.parametrize(("argument", "value"), [("k", 0), ("k", "2"), ("threshold", 2), ("max_tokens", -1)])
def test_an_argument_out_of_range_is_refused_before_any_event(
    tiny_scanner: Scanner,
    documents: list[Document],
    events: Any,
    asynchronous: bool,
    argument: str,
    value: Any,
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner)
    with pytest.raises(ValueError, match=f"^{argument}: got {value!r}"):
        call(retriever, asynchronous, QUERY, {"callbacks": [events]}, **{argument: value})
    assert events.seen == []


@pytest.mark.parametrize("query", ["", " \n", None])
def test_no_query_is_refused_before_any_event(
    documents: list[Document], events: Any, asynchronous: bool, query: Any
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, model="no/such-model")
    with pytest.raises(ValueError, match=re.escape(f"query: got {query!r}; expected a question")):
        call(retriever, asynchronous, query, {"callbacks": [events]})
    assert events.seen == []


def test_one_start_and_one_end(
    word_scorer: Any, documents: list[Document], events: Any, asynchronous: bool
) -> None:
    retriever = SPScannerRetriever.from_documents(
        documents, scorer=word_scorer, tags=["field"], metadata={"owner": "me"}
    )
    found = call(
        retriever.with_config(tags=["config"], run_name="facts", metadata={"session": 1}),
        asynchronous,
        QUERY,
        {"callbacks": [events]},
    )
    assert events.seen == ["start", "end"]
    assert events.ends == [found]
    (start,) = events.starts
    assert start["query"] == QUERY
    assert start["name"] == "facts"
    assert set(start["tags"]) == {"field", "config"}
    assert start["metadata"]["ls_retriever_name"] == "spscanner"
    assert start["metadata"].items() >= {"owner": "me", "session": 1}.items()


def test_an_empty_corpus_still_sends_both_events(events: Any, asynchronous: bool) -> None:
    retriever = SPScannerRetriever.from_documents([])
    assert call(retriever, asynchronous, QUERY, {"callbacks": [events]}) == []
    assert events.seen == ["start", "end"]


def test_an_error_is_sent_and_raised(documents: list[Document], events: Any, asynchronous: bool) -> None:
    class Broken:
        def score_units(self, query: str, text: str, units: Any) -> np.ndarray:
            return np.zeros(len(units) + 1, np.float32)

    retriever = SPScannerRetriever.from_documents(documents, scorer=Broken())
    with pytest.raises(ValueError, match=r"Broken\S* returned shape"):
        call(retriever, asynchronous, QUERY, {"callbacks": [events]})
    assert events.seen == ["start", "ValueError"]


def test_the_first_stage_runs_as_a_child_in_the_same_manner(
    word_scorer: Any, documents: list[Document], events: Any, asynchronous: bool
) -> None:
    stage = Stage(found=documents, seen=[])
    retriever = SPScannerRetriever.from_retriever(stage, scorer=word_scorer)
    call(retriever, asynchronous, QUERY, {"callbacks": [events], "tags": ["mine"]})
    assert stage.seen == ["async" if asynchronous else "sync"]
    assert events.seen == ["start", "start", "end", "end"]
    outer, inner = events.starts
    assert inner["parent_run_id"] == outer["run_id"]
    assert outer["parent_run_id"] is None
    assert "mine" in inner["tags"]


def test_async_results_are_those_of_sync(tiny_scanner: Scanner, documents: list[Document]) -> None:
    for fields in ({}, {"k": 3, "order": "document", "merge_adjacent": True}, {"threshold": 0.5}):
        retriever = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner, **fields)
        assert asyncio.run(retriever.ainvoke(QUERY)) == retriever.invoke(QUERY)


def test_context_variables_reach_the_scan(documents: list[Document]) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    class Reads:
        def score_units(self, query: str, text: str, units: Any) -> np.ndarray:
            seen.append(variable.get())
            return np.zeros(len(units), np.float32)

    async def run() -> None:
        variable.set("set")
        await SPScannerRetriever.from_documents(documents, scorer=Reads()).ainvoke(QUERY)

    asyncio.run(run())
    assert set(seen) == {"set"}


@pytest.mark.parametrize("with_first_stage", [False, True])
def test_sixty_four_calls_at_once(
    tiny_checkpoint: Path,
    documents: list[Document],
    monkeypatch: pytest.MonkeyPatch,
    with_first_stage: bool,
) -> None:
    loads: list[bool] = []
    loop = EventLoop()
    load = Scanner.from_pretrained.__func__  # type: ignore[attr-defined]

    def slow_load(cls: type[Scanner], *args: Any, **kwargs: Any) -> Scanner:
        loads.append(all(loop.runs() for _ in range(50)))  # so that the others ask for it meanwhile
        return load(cls, *args, **kwargs)

    shared_scanners.forget_shared_scanners()
    monkeypatch.setattr(Scanner, "from_pretrained", classmethod(slow_load))
    fields: dict[str, Any] = {"model": str(tiny_checkpoint), "device": "cpu", "dtype": "float32", "k": 5}
    if with_first_stage:
        retriever = SPScannerRetriever.from_retriever(
            Stage(found=documents[:1], seen=[]), documents=documents, **fields
        )
    else:
        retriever = SPScannerRetriever.from_documents(documents, **fields)
    queries = [f"Who signed the treaty in {1700 + number}?" for number in range(64)]

    async def all_at_once() -> Any:
        return await loop.beside(asyncio.gather(*map(retriever.ainvoke, queries)))

    found = asyncio.run(all_at_once())
    assert loads == [True]
    for query, result in zip(queries, found, strict=True):
        alone = retriever.invoke(query)
        assert [d.id for d in result] == [d.id for d in alone]
        np.testing.assert_allclose(
            [d.metadata["spscanner_logit"] for d in result],
            [d.metadata["spscanner_logit"] for d in alone],
            atol=1e-4,
        )


def test_the_event_loops_own_threads_stay_free(slow_scorer: Any, documents: list[Document]) -> None:
    slow_scorer.rounds = 30
    retriever = SPScannerRetriever.from_documents(documents, scorer=slow_scorer)

    async def run() -> float:
        scans = asyncio.gather(*(retriever.ainvoke(QUERY) for _ in range(40)), return_exceptions=True)
        while not slow_scorer.began.is_set():
            await asyncio.sleep(0.001)
        begun = time.perf_counter()
        await asyncio.to_thread(lambda: None)  # would wait behind 40 scans in a shared pool
        waited = time.perf_counter() - begun
        scans.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scans
        return waited

    assert asyncio.run(run()) < 1.0  # seconds


def test_cancelling_ends_the_scan_and_the_run(
    slow_scorer: Any, documents: list[Document], events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    retriever = SPScannerRetriever.from_documents(documents, scorer=slow_scorer)

    async def run() -> None:
        task = asyncio.ensure_future(retriever.ainvoke(QUERY, {"callbacks": [events]}))
        while not slow_scorer.began.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert slow_scorer.ended.wait(10)
    assert slow_scorer.cancelled
    assert events.seen == ["start", "CancelledError"]
    assert caplog.text == ""
    slow_scorer.rounds = 0
    assert len(asyncio.run(retriever.ainvoke(QUERY))) == 10  # the next call is not affected


def test_a_time_limit_ends_the_scan(slow_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=slow_scorer)

    async def run() -> None:
        async with asyncio.timeout(0.1):
            await retriever.ainvoke(QUERY)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert slow_scorer.ended.wait(10)
    assert slow_scorer.cancelled


def test_cancelling_during_the_first_stage_scans_nothing(word_scorer: Any, events: Any) -> None:
    async def run() -> None:
        asked = asyncio.Event()

        async def stage(query: str) -> list[Document]:
            asked.set()
            await asyncio.sleep(60)
            return []

        def sync_stage(query: str) -> list[Document]:
            raise AssertionError("called synchronously")

        retriever = SPScannerRetriever.from_retriever(RunnableLambda(sync_stage, stage), scorer=word_scorer)
        task = asyncio.ensure_future(retriever.ainvoke(QUERY, {"callbacks": [events]}))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert word_scorer.calls == 0
    assert events.seen == ["start", "CancelledError"]


def test_documents_may_change_while_others_scan(word_scorer: Any) -> None:
    retriever = SPScannerRetriever.from_texts(["Text 0."], ids=["0"], scorer=word_scorer, first_stage="none")
    errors: list[BaseException] = []
    stop = threading.Event()

    def scan() -> None:
        try:
            while not stop.is_set():
                found = retriever.invoke("text")
                assert all(d.page_content.startswith("Text") for d in found)
        except BaseException as error:
            errors.append(error)

    def add(first: int) -> None:
        for number in range(first, first + 50):
            retriever.add_documents([Document(f"Text {number}.", id=str(number))])

    scans = [threading.Thread(target=scan) for _ in range(2)]
    adds = [threading.Thread(target=add, args=(first,)) for first in (1, 101, 201)]
    for thread in [*scans, *adds]:
        thread.start()
    for thread in adds:
        thread.join()
    stop.set()
    for thread in scans:
        thread.join()
    assert errors == []
    assert len(retriever.invoke("text", k=None)) == 151  # none was lost
