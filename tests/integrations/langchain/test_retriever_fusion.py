"""LangChain's retrievers that merge results recognize a hit that is in two."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever
from tests.integrations.langchain.conftest import WordScorer

QUERY = "Who signed the treaty?"
VARIANTS = ["Did the captain sign?", "When was the treaty signed?"]


def retriever(documents: Sequence[Document], **options: Any) -> SPScannerRetriever:
    return SPScannerRetriever.from_documents(
        documents, **{"scorer": WordScorer(), "k": None} | options
    )


@pytest.mark.parametrize("return_nodes", ["sentence", "node"])
def test_multi_query_drops_what_is_found_again(
    documents: list[Document], return_nodes: Any
) -> None:
    ours = retriever(documents, return_nodes=return_nodes)
    llm = FakeListChatModel(responses=["\n".join(VARIANTS)])
    multi = MultiQueryRetriever.from_llm(ours, llm, include_original=True)
    alone = {d.id: d for d in ours.invoke(QUERY)}
    for found in (multi.invoke(QUERY), asyncio.run(multi.ainvoke(QUERY))):
        assert len(found) == len(alone)
        assert {d.id: d for d in found} == alone


@pytest.mark.parametrize("allowed", [True, None], ids=["default", "strict"])
@pytest.mark.parametrize("return_nodes", ["sentence", "node", "pruned"])
def test_a_checkpoint_gives_documents_back(
    documents: list[Document],
    return_nodes: Any,
    allowed: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours = retriever(documents, return_nodes=return_nodes, count_tokens=len)
    found = ours.invoke(QUERY)
    compressor = SPScannerCompressor(
        scorer=WordScorer(), k=3, return_nodes=return_nodes
    )
    found += compressor.compress_documents(documents, QUERY)
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=allowed))
    thread: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    state = empty_checkpoint() | {
        "channel_values": {"context": found},
        "channel_versions": {"context": 1},
    }
    saver.put(thread, state, {}, {"context": 1})
    (stored,) = saver.list(thread)
    kept = stored.checkpoint["channel_values"]["context"]
    assert [type(document) for document in found + kept] == [Document] * (
        2 * len(found)
    )
    assert [(d.page_content, d.id, dict(d.metadata)) for d in kept] == [
        (d.page_content, d.id, dict(d.metadata)) for d in found
    ]
    assert caplog.messages == []
