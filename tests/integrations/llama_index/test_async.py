"""The async paths: beside the event loop, cancellable, and with the results of the sync ones."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from spscanner_rag.scanner import Scanner
from tests.integrations.event_loop import EventLoop

QUESTIONS = [
    f"{word} signed the treaty in {year}?" for word in ("Who", "Where") for year in range(1900, 1932)
]
TOLERANCE = 1e-4


def summary(found: list[NodeWithScore]) -> tuple[list[str], list[float | None]]:
    return [n.node.node_id for n in found], [n.score for n in found]


@pytest.mark.parametrize("kind", ["postprocessor", "retriever"])
def test_64_at_once_block_nothing_load_once_and_agree_with_one_by_one(
    kind: str,
    chunks: list[BaseNode],
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_shared_scanners: None,
) -> None:
    loads: list[bool] = []
    loop = EventLoop()
    original = Scanner.from_pretrained

    def counted(*arguments: Any, **options: Any) -> Scanner:
        loads.append(loop.runs())
        return original(*arguments, **options)

    monkeypatch.setattr(Scanner, "from_pretrained", counted)
    options: dict[str, Any] = {"model": str(tiny_checkpoint), "device": "cpu", "dtype": "float32"}
    if kind == "retriever":
        retriever = SPScannerRetriever(chunks, similarity_top_k=5, **options)
        one: Callable[[str], list[NodeWithScore]] = retriever.retrieve
        many: Callable[[str], Awaitable[list[NodeWithScore]]] = retriever.aretrieve
    else:
        post = SPScannerPostprocessor(top_n=5, **options)
        nodes = [NodeWithScore(node=node) for node in chunks]

        def one(question: str) -> list[NodeWithScore]:
            return post.postprocess_nodes(nodes, query_str=question)

        def many(question: str) -> Awaitable[list[NodeWithScore]]:
            return post.apostprocess_nodes(nodes, query_str=question)

    async def at_once() -> Any:
        return await asyncio.gather(*map(many, QUESTIONS))

    found = asyncio.run(loop.beside(at_once()))
    assert loads == [True]
    for question, sentences in zip(QUESTIONS, found, strict=True):
        names, scores = summary(one(question))
        assert summary(sentences)[0] == names
        assert summary(sentences)[1] == pytest.approx(scores, abs=TOLERANCE)
    assert loads == [True]


def test_a_long_scan_does_not_hold_the_loop(documents: list[Document]) -> None:
    loop, free = EventLoop(), []

    class Asking:
        def score_units(self, query: str, text: str, units: Any) -> Any:
            free.append(loop.runs())
            return np.zeros(len(units), np.float32)

    retriever = SPScannerRetriever(documents, scorer=Asking())
    asyncio.run(loop.beside(retriever.aretrieve(QUESTIONS[0])))
    post = SPScannerPostprocessor(scorer=Asking())
    asyncio.run(loop.beside(post.apostprocess_nodes(documents, query_str=QUESTIONS[0])))  # type: ignore[arg-type]
    assert free
    assert all(free)


@pytest.mark.parametrize(
    "options",
    [{}, {"threshold": 0.2}, {"order": "document"}, {"merge_adjacent": True, "context_sentences": 1}],
)
def test_async_gives_what_sync_gives(
    options: dict[str, Any], documents: list[Document], chunks: list[BaseNode], word_scorer: Any
) -> None:
    post = SPScannerPostprocessor(scorer=word_scorer, documents=documents, **options)
    nodes = [NodeWithScore(node=node, score=0.5) for node in chunks]
    retriever = SPScannerRetriever(chunks, scorer=word_scorer, **options)
    for question in QUESTIONS[:3]:
        sync = post.postprocess_nodes(nodes, query_str=question)
        assert asyncio.run(post.apostprocess_nodes(nodes, query_str=question)) == sync
        assert asyncio.run(retriever.aretrieve(question)) == retriever.retrieve(question)


@pytest.mark.parametrize("kind", ["postprocessor", "retriever"])
def test_cancelling_the_task_ends_the_scan(kind: str, documents: list[Document]) -> None:
    started = threading.Event()
    release = threading.Event()
    read: list[str] = []

    class Slow:
        def score_units(self, query: str, text: str, units: Any) -> Any:
            read.append(text)
            started.set()
            release.wait(10)
            return np.zeros(len(units), np.float32)

    many = [Document(text=f"Text {i}.", id_=str(i)) for i in range(50)]

    async def run() -> None:
        if kind == "retriever":
            work: Any = SPScannerRetriever(many, scorer=Slow()).aretrieve(QUESTIONS[0])
        else:
            work = SPScannerPostprocessor(scorer=Slow()).apostprocess_nodes(many, query_str=QUESTIONS[0])  # type: ignore[arg-type]
        task = asyncio.create_task(work)
        while not started.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await asyncio.sleep(0.2)

    asyncio.run(run())
    assert len(read) == 1


def test_the_first_stage_is_awaited(documents: list[Document], word_scorer: Any) -> None:
    calls: list[str] = []

    class First(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            calls.append("sync")
            return [NodeWithScore(node=documents[0], score=0.5)]

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            calls.append("async")
            await asyncio.sleep(0.01)
            return [NodeWithScore(node=documents[0], score=0.5)]

    retriever = SPScannerRetriever(documents, scorer=word_scorer, retriever=First())
    asyncio.run(retriever.aretrieve(QUESTIONS[0]))
    assert calls == ["async"]
    retriever.retrieve(QUESTIONS[0])
    assert calls == ["async", "sync"]
