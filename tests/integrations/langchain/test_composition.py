"""The retriever inside other LangChain parts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

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


def test_in_place_of_a_vector_retriever_in_one_line(word_scorer: Any, documents: list[Document]) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(
        RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0).split_documents(documents)
    )
    retriever = store.as_retriever(search_kwargs={"k": 20})
    before = retriever.invoke(QUERY)
    retriever = SPScannerRetriever.from_retriever(retriever, scorer=word_scorer, k=5)
    after = retriever.invoke(QUERY)
    assert len(after) == 5 < len(before)
    assert before[0].metadata.keys() <= after[0].metadata.keys()


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


def test_stream(retriever: SPScannerRetriever) -> None:
    async def run() -> list[Any]:
        return [found async for found in retriever.astream(QUERY)]

    assert list(retriever.stream(QUERY)) == asyncio.run(run()) == [retriever.invoke(QUERY)]


def test_events_of_a_chain(retriever: SPScannerRetriever) -> None:
    chain = (retriever.with_config(run_name="sentences") | joined).with_config(tags=["whole"])

    async def run() -> list[Any]:
        return [event async for event in chain.astream_events(QUERY, version="v2")]

    events = [event for event in asyncio.run(run()) if event["name"] == "sentences"]
    assert [event["event"] for event in events] == ["on_retriever_start", "on_retriever_end"]
    assert events[1]["data"]["output"] == retriever.invoke(QUERY)
    assert all("whole" in event["tags"] for event in events)


def test_with_retry_and_fallbacks(retriever: SPScannerRetriever) -> None:
    failures = iter([True, False])

    def stage(query: str) -> list[Document]:
        if next(failures):
            raise ConnectionError("down")
        return list(retriever.documents or ())

    behind = SPScannerRetriever.from_retriever(RunnableLambda(stage), scorer=retriever.scorer, k=3)
    retried = behind.with_retry(
        retry_if_exception_type=(ConnectionError,), wait_exponential_jitter=False, stop_after_attempt=2
    )
    assert [d.page_content for d in retried.invoke(QUERY)] == [
        d.page_content for d in retriever.invoke(QUERY)
    ]
    missing = SPScannerRetriever.from_texts(["A text."], model="no/such-model")
    with_fallback = missing.with_fallbacks([retriever])
    assert with_fallback.invoke(QUERY) == retriever.invoke(QUERY)
    assert asyncio.run(with_fallback.ainvoke(QUERY)) == retriever.invoke(QUERY)


def test_as_a_tool(retriever: SPScannerRetriever) -> None:
    tool = create_retriever_tool(
        retriever, "facts", "Facts of the harbour.", response_format="content_and_artifact"
    )
    expected = retriever.invoke(QUERY)
    call = {"name": "facts", "args": {"query": QUERY}, "id": "1", "type": "tool_call"}
    message = tool.invoke(call)
    assert message.artifact == expected
    assert all(document.page_content in message.content for document in expected)
    assert asyncio.run(tool.ainvoke(call)).artifact == expected


def test_equal_sentences_in_an_ensemble_keep_their_metadata(word_scorer: Any) -> None:
    ours = [Document("The treaty was signed. Rain fell.", metadata={"source": name}) for name in "ab"]
    one = SPScannerRetriever.from_documents(ours[:1], scorer=word_scorer, k=1)
    two = SPScannerRetriever.from_documents(ours[1:], scorer=word_scorer, k=1)
    ensemble = EnsembleRetriever(retrievers=[one, two], weights=[0.5, 0.5], id_key="spscanner_id")
    for found in (ensemble.invoke("treaty"), asyncio.run(ensemble.ainvoke("treaty"))):
        assert [d.page_content for d in found] == ["The treaty was signed."] * 2
        assert sorted(d.metadata["source"] for d in found) == ["a", "b"]
    # By the text, which is the ensemble's default, one of the two is left, with its own metadata.
    (kept,) = EnsembleRetriever(retrievers=[one, two], weights=[0.5, 0.5]).invoke("treaty")
    assert kept in (one.invoke("treaty")[0], two.invoke("treaty")[0])


def test_in_an_ensemble_with_another_retriever(
    retriever: SPScannerRetriever, documents: list[Document]
) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents)
    ensemble = EnsembleRetriever(retrievers=[retriever, store.as_retriever()], weights=[0.5, 0.5])
    found = ensemble.invoke(QUERY)
    assert len(found) == 5
    assert sum("relevance_score" in d.metadata for d in found) == 3


def test_results_can_be_stored_again(retriever: SPScannerRetriever) -> None:
    found = retriever.invoke(QUERY)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    ids = store.add_documents(found)
    assert ids == [d.id for d in found]
    assert len(store.add_documents(found)) == 3
    assert len(store.store) == 3  # the ids are their own, and stay the same
