"""The recipes for agents and for ingestion, with a scripted model."""

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeWithScore,
    TransformComponent,
)
from llama_index.core.tools import FunctionTool, QueryEngineTool

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from tests.integrations.hosts import WordScorer
from tests.integrations.llama_index.conftest import HARBOUR, LIGHTHOUSE, QUERY

SIGNED = "He signed the treaty with the captain in May."
DOCUMENTS = [
    Document(text=LIGHTHOUSE, id_="lighthouse"),
    Document(text=HARBOUR, id_="harbour"),
]


def scripted(tool: str, **arguments: Any) -> MockFunctionCallingLLM:
    """A model that calls a tool once and then repeats its result."""

    def say(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(
                role="assistant", content=f"It says: {messages[-1].content}"
            )
        call = ToolCallBlock(tool_call_id="1", tool_name=tool, tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])

    return MockFunctionCallingLLM(response_generator=say, is_chat_model=True)


def retriever() -> SPScannerRetriever:
    return SPScannerRetriever.from_documents(
        DOCUMENTS, scorer=WordScorer(), similarity_top_k=1
    )


def function_tool() -> FunctionTool:
    asked = retriever()

    async def quote(question: str) -> str:
        """Sentences that answer a question, with their places."""
        found = await asked.aretrieve(question)
        return "\n".join(f"[{one.node.node_id}] {one.node.text}" for one in found)

    return FunctionTool.from_defaults(async_fn=quote)


def query_engine_tool() -> QueryEngineTool:
    engine = RetrieverQueryEngine.from_args(retriever(), llm=MockLLM())
    return QueryEngineTool.from_defaults(
        engine, name="papers", description="Answers from the papers."
    )


@pytest.mark.parametrize(
    ("tool", "name", "argument"),
    [(function_tool, "quote", "question"), (query_engine_tool, "papers", "input")],
)
async def test_an_agent_reads_the_sentences_that_matter(
    tool: Any, name: str, argument: str
) -> None:
    agent = FunctionAgent(
        tools=[tool()], llm=scripted(name, **{argument: QUERY}), streaming=False
    )
    running = agent.run("Who made peace?")
    results = [
        event
        async for event in running.stream_events()
        if isinstance(event, ToolCallResult)
    ]
    answer = str(await running)
    assert SIGNED in answer
    assert "the harbour was widened" not in answer.lower()
    (result,) = results
    assert not result.tool_output.is_error
    if name == "quote":
        start = LIGHTHOUSE.index(SIGNED)
        assert f"[lighthouse:{start}-{start + len(SIGNED)}]" in answer
    else:
        (source,) = result.tool_output.raw_output.source_nodes
        assert source.node.text == SIGNED


@pytest.mark.parametrize(
    "before", [[], [SentenceSplitter(chunk_size=40, chunk_overlap=0)]]
)
@pytest.mark.parametrize("how", ["run", "arun"])
async def test_an_ingestion_keeps_what_answers_a_standing_question(
    before: list[Any], how: str
) -> None:
    post = SPScannerPostprocessor(scorer=WordScorer(), top_n=1)

    class Kept(TransformComponent):
        def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> Sequence[BaseNode]:
            scored = [NodeWithScore(node=node) for node in nodes]
            return [one.node for one in post.postprocess_nodes(scored, query_str=QUERY)]

    pipeline = IngestionPipeline(transformations=[*before, Kept()])
    (node,) = (
        pipeline.run(documents=DOCUMENTS)
        if how == "run"
        else await pipeline.arun(documents=DOCUMENTS)
    )
    assert node.get_content() == SIGNED
    assert node.ref_doc_id == "lighthouse"
