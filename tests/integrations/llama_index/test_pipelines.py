"""In the framework's query engines, fusion, routers, chat engines, ingestion and stored indexes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
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


def test_query_engine_with_the_retriever(retriever: SPScannerRetriever) -> None:
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    sync, through_async = engine.query(QUERY), asyncio.run(engine.aquery(QUERY))
    assert contents(sync.source_nodes)[0] == ANSWER
    assert ANSWER in str(sync)  # the mock repeats its prompt
    assert "spscanner" not in str(sync)
    assert sync.source_nodes == through_async.source_nodes


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


def test_a_stored_index_that_is_loaded_again(
    index: VectorStoreIndex, word_scorer: Any, tmp_path: Path
) -> None:
    expected = SPScannerRetriever.from_index(index, scorer=word_scorer).retrieve(QUERY)
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, embed_model=MockEmbedding(4))
    found = SPScannerRetriever.from_index(loaded, scorer=word_scorer).retrieve(QUERY)
    assert [(n.node.node_id, n.score) for n in found] == [(n.node.node_id, n.score) for n in expected]
    staged = SPScannerRetriever.from_index(
        loaded, scorer=word_scorer, retriever=loaded.as_retriever(similarity_top_k=1), read_documents=1
    )
    assert len({n.node.ref_doc_id for n in staged.retrieve(QUERY)}) == 1


def test_sentences_can_be_stored_and_found_again(retriever: SPScannerRetriever, tmp_path: Path) -> None:
    sentences = retriever.retrieve(QUERY)
    store = SimpleDocumentStore()
    store.add_documents([n.node for n in sentences])
    store.persist(str(tmp_path / "docstore.json"))
    loaded = SimpleDocumentStore.from_persist_path(str(tmp_path / "docstore.json"))
    assert [loaded.get_document(n.node.node_id) for n in sentences] == [n.node for n in sentences]
