"""Every reranking that starts also ends, in both kinds of tracing.

Spans as the framework opens them.
"""

import asyncio
import threading
from typing import Any

import pytest
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.schema import BaseNode, Document, NodeWithScore

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from spscanner_rag.scorers import Scorer
from tests.fakes import ScoredBy

QUERY = "Who signed the treaty?"


def run(
    post: Any, nodes: list[Any], query: str | None, use_async: bool
) -> list[NodeWithScore]:
    if use_async:
        return asyncio.run(post.apostprocess_nodes(nodes, query_str=query))
    return post.postprocess_nodes(nodes, query_str=query)


both_ways = pytest.mark.parametrize("use_async", [False, True], ids=["sync", "async"])


@both_ways
def test_rerank_events(
    recorder: Any, chunks: list[BaseNode], word_scorer: Any, use_async: bool
) -> None:
    post = SPScannerPostprocessor(
        scorer=word_scorer, top_n=2, callback_manager=recorder.manager
    )
    nodes = [NodeWithScore(node=node) for node in chunks]
    found = run(post, nodes, QUERY, use_async)
    (start,), (end,) = (
        recorder.named("ReRankStartEvent"),
        recorder.named("ReRankEndEvent"),
    )
    assert (start.query.query_str, start.top_n, start.model_name) == (
        QUERY,
        2,
        "WordScorer",
    )
    assert start.nodes == nodes
    assert end.nodes == found
    (span,) = [
        span.id_
        for span in recorder.spans.completed_spans
        if span.id_.startswith("SPScanner")
    ]
    name = "_apostprocess_nodes" if use_async else "_postprocess_nodes"
    assert span.split("-")[0] == f"SPScannerPostprocessor.{name}"
    assert start.span_id == end.span_id == span
    ((begun, ended),) = recorder.callbacks.get_event_pairs(CBEventType.RERANKING)
    assert begun.payload == {
        EventPayload.NODES: nodes,
        EventPayload.MODEL_NAME: "WordScorer",
        EventPayload.QUERY_STR: QUERY,
        EventPayload.TOP_K: 2,
    }
    assert ended.payload == {EventPayload.NODES: found}
    end.nodes.clear()  # a handler cannot change the result
    ended.payload[EventPayload.NODES].clear()
    assert len(found) == 2


@both_ways
def test_limit_of_events(
    recorder: Any, chunks: list[BaseNode], word_scorer: Any, use_async: bool
) -> None:
    for top_n in (None, 0.5):
        run(
            SPScannerPostprocessor(scorer=word_scorer, top_n=top_n),
            list(chunks),
            QUERY,
            use_async,
        )
    assert (
        run(SPScannerPostprocessor(model="no/such-model"), [], QUERY, use_async) == []
    )
    assert [event.top_n for event in recorder.named("ReRankStartEvent")] == [
        len(chunks),
        len(chunks),
        50,
    ]
    assert [len(event.nodes) for event in recorder.named("ReRankEndEvent")][2:] == [0]


@both_ways
def test_a_scan_that_fails_ends_its_events(
    recorder: Any, chunks: list[BaseNode], use_async: bool
) -> None:
    post = SPScannerPostprocessor(
        scorer=ScoredBy(lambda *_: 1 / 0), callback_manager=recorder.manager
    )
    with pytest.raises(ZeroDivisionError):
        run(post, list(chunks), QUERY, use_async)
    assert len(recorder.named("ReRankStartEvent")) == 1
    assert [event.nodes for event in recorder.named("ReRankEndEvent")] == [[]]
    ((_, ended),) = recorder.callbacks.get_event_pairs()
    assert isinstance(ended.payload[EventPayload.EXCEPTION], ZeroDivisionError)
    assert len(recorder.dropped_span_names()) == 1


def test_a_scan_that_is_cancelled_ends_its_events(
    recorder: Any, chunks: list[BaseNode]
) -> None:
    started, release = threading.Event(), threading.Event()

    class Slow(Scorer):
        def score_units(self, query: str, text: str, units: Any) -> Any:
            started.set()
            release.wait(10)
            return [0.0] * len(units)

    post = SPScannerPostprocessor(scorer=Slow(), callback_manager=recorder.manager)

    async def cancelled() -> None:
        task = asyncio.create_task(
            post.apostprocess_nodes(list(chunks), query_str=QUERY)
        )
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [event.nodes for event in recorder.named("ReRankEndEvent")] == [[]]
        assert [len(pair) for pair in recorder.callbacks.get_event_pairs()] == [2]
        release.set()

    asyncio.run(cancelled())


@both_ways
def test_events_and_spans_of_a_retrieval(
    recorder: Any, documents: list[Document], word_scorer: Any, use_async: bool
) -> None:
    retriever = SPScannerRetriever(
        documents, scorer=word_scorer, callback_manager=recorder.manager
    )
    found = (
        asyncio.run(retriever.aretrieve(QUERY))
        if use_async
        else retriever.retrieve(QUERY)
    )
    assert len(recorder.named("RetrievalStartEvent")) == 1
    assert [event.nodes for event in recorder.named("RetrievalEndEvent")] == [found]
    ((begun, _),) = recorder.callbacks.get_event_pairs()
    assert begun.event_type == CBEventType.RETRIEVE
    a = "a" if use_async else ""
    assert recorder.span_names() == [
        f"SPScannerRetriever._{a}retrieve",
        f"SPScannerRetriever.{a}retrieve",
    ]
    assert not recorder.named("ReRankStartEvent")
