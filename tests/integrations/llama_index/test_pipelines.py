"""In the framework's query engines, fusion, routers, chat engines, ingestion and stored indexes."""

import asyncio
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever

QUERY = "Who signed the treaty with the captain?"
ANSWER = "He signed the treaty with the captain in May."


@pytest.fixture
def index(chunks: list[BaseNode]) -> VectorStoreIndex:
    return VectorStoreIndex(chunks, embed_model=MockEmbedding(4))


@pytest.fixture
def retriever(documents: list[Document], word_scorer: Any) -> SPScannerRetriever:
    return SPScannerRetriever(documents, scorer=word_scorer, similarity_top_k=3)


def contents(nodes: list[NodeWithScore]) -> list[str]:
    return [n.node.get_content() for n in nodes]


def test_query_engine_with_the_postprocessor(
    index: VectorStoreIndex, word_scorer: Any, recorder: Any
) -> None:
    post = SPScannerPostprocessor(scorer=word_scorer, top_n=3)
    engine = index.as_query_engine(similarity_top_k=20, node_postprocessors=[post], llm=MockLLM())
    sync, through_async = engine.query(QUERY), asyncio.run(engine.aquery(QUERY))
    assert contents(sync.source_nodes)[0] == ANSWER
    assert sync.source_nodes == through_async.source_nodes
    assert len(recorder.named("ReRankStartEvent")) == len(recorder.named("ReRankEndEvent")) == 2
    assert len(recorder.named("RetrievalStartEvent")) == len(recorder.named("RetrievalEndEvent")) == 2


def test_output_of_an_ingestion_pipeline(documents: list[Document], word_scorer: Any) -> None:
    store = SimpleDocumentStore()
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=60, chunk_overlap=10), MockEmbedding(4)],
        docstore=store,
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    nodes = pipeline.run(documents=documents)
    expected = [n.node.node_id for n in SPScannerRetriever(documents, scorer=word_scorer).retrieve(QUERY)]
    for options in ({}, {"docstore": store}):  # the pipeline's store holds the documents
        retriever = SPScannerRetriever.from_nodes(nodes, scorer=word_scorer, **options)
        assert [n.node.node_id for n in retriever.retrieve(QUERY)] == expected
        assert all(n.node.embedding is None for n in retriever.retrieve(QUERY))
    post = SPScannerPostprocessor(scorer=word_scorer, docstore=store)
    found = post.postprocess_nodes([NodeWithScore(node=node) for node in nodes], query_str=QUERY)
    by_id = {document.node_id: document.text for document in documents}
    for n in found:
        assert by_id[n.node.ref_doc_id][n.node.start_char_idx : n.node.end_char_idx] == n.node.text
