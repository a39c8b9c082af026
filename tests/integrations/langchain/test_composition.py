"""The retriever inside other LangChain parts."""

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_spscanner import SPScannerRetriever

QUERY = "Who signed the treaty?"


@pytest.fixture
def retriever(word_scorer: Any, documents: list[Document]) -> SPScannerRetriever:
    return SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=3)


def test_batch_and_abatch(retriever: SPScannerRetriever) -> None:
    queries = [QUERY, "lighthouse", "well winter"]
    expected = [retriever.invoke(query) for query in queries]
    assert retriever.batch(queries) == expected
    assert asyncio.run(retriever.abatch(queries)) == expected
    assert retriever.batch(queries, k=1) == [found[:1] for found in expected]
    assert asyncio.run(retriever.abatch(queries, {"max_concurrency": 2}, k=1)) == [f[:1] for f in expected]
    mixed = retriever.batch([QUERY, ""], return_exceptions=True)
    assert mixed[0] == expected[0]
    assert isinstance(mixed[1], ValueError)
