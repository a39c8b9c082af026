"""The retriever inside other LangChain parts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from langchain_spscanner import SPScannerRetriever

QUERY = "Who signed the treaty?"


@pytest.fixture
def retriever(word_scorer: Any, documents: list[Document]) -> SPScannerRetriever:
    return SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=3)


def joined(found: Sequence[Document]) -> str:
    return "\n".join(document.page_content for document in found)


def test_in_a_chain(retriever: SPScannerRetriever) -> None:
    prompts: list[str] = []

    def noted(prompt: Any) -> Any:
        prompts.append(prompt.to_string())
        return prompt

    chain = (
        {"context": retriever | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
        | noted
        | FakeListChatModel(responses=["Captain Moore"])
        | StrOutputParser()
    )
    assert chain.invoke(QUERY) == "Captain Moore"
    assert asyncio.run(chain.ainvoke(QUERY)) == "Captain Moore"
    assert "Captain Moore signed the treaty on the island." in prompts[0]
    assert "The winter was long." not in prompts[0]
    assert prompts[0] == prompts[1]


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
