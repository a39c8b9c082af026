"""Many asynchronous calls at a time of a scorer that only waits for a server, in both frameworks."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from numpy.typing import NDArray

from langchain_spscanner import SPScannerCompressor as Compressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from spscanner_rag.baselines import RemoteScanner
from spscanner_rag.retrieval.background import AT_ONCE
from spscanner_rag.text.units import Unit

CALLS, PATIENCE = AT_ONCE + 4, 60
TEXT = "Anne went up the steps. Louisa fell."


class Waiting:
    """Answers when as many calls as `CALLS` wait for an answer."""

    name = "waiting"
    calls_at_once = CALLS

    def __init__(self) -> None:
        self.together = threading.Barrier(CALLS)

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        self.together.wait(PATIENCE)
        return np.arange(len(units), dtype=np.float32)


Asking = Callable[[], Awaitable[Sequence[object]]]


def langchain_retriever(scorer: Waiting) -> Asking:
    retriever = LangChainRetriever.from_documents([Document(TEXT)], scorer=scorer)
    return lambda: retriever.ainvoke("Who fell?")


def langchain_compressor(scorer: Waiting) -> Asking:
    compressor = Compressor(scorer=scorer)
    return lambda: compressor.acompress_documents([Document(TEXT)], "Who fell?")


def llama_index_retriever(scorer: Waiting) -> Asking:
    retriever = LlamaIndexRetriever([TextNode(text=TEXT)], scorer=scorer)
    return lambda: retriever.aretrieve("Who fell?")


def llama_index_reranker(scorer: Waiting) -> Asking:
    reranker = SPScannerPostprocessor(scorer=scorer)
    nodes = [NodeWithScore(node=TextNode(text=TEXT))]
    return lambda: reranker.apostprocess_nodes(nodes, query_bundle=QueryBundle("Who fell?"))


@pytest.mark.parametrize(
    "made", [langchain_retriever, langchain_compressor, llama_index_retriever, llama_index_reranker]
)
def test_calls_wait_together(made: Callable[[Waiting], Asking]) -> None:
    ask = made(Waiting())

    async def all_at_once() -> list[Sequence[object]]:
        return await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(CALLS))), PATIENCE)

    assert all(len(found) > 0 for found in asyncio.run(all_at_once()))


def test_a_remote_scanner_is_asked_by_more_calls_than_run_here() -> None:
    assert RemoteScanner.calls_at_once > AT_ONCE
