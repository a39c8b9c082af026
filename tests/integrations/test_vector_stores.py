"""Qdrant in memory as the first stage, as its users build it.

Skipped if it is missing (extra ``dev``).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter

from langchain_spscanner import SPScannerRetriever
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaRetriever
from spscanner_rag.scanner import Scanner

# Qdrant without a server warns that it has no payload indexes, which LlamaIndex's class
# asks for.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Payload indexes have no effect:UserWarning"
)

QUERY = "When does the viper sleep?"
TEXTS = {
    "soup": (
        "Cut the leek. Boil the soup for an hour. Serve it with bread. The pot is hot."
        " Salt it well."
    ),
    "snake": (
        "The viper is a snake. It eats mice in summer. It is shy. In winter the viper"
        " does sleep."
    ),
    "mill": (
        "The mill stood still. The river was dry. The miller left. His house was sold"
        " in spring."
    ),
}


@pytest.fixture
def qdrant() -> Iterator[Any]:
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    yield client
    client.close()


def test_langchain_joins_chunks(tiny_scanner: Scanner, qdrant: Any) -> None:
    models = pytest.importorskip("qdrant_client").models
    vectors = models.VectorParams(size=8, distance=models.Distance.COSINE)
    qdrant.create_collection("notes", vectors_config=vectors)
    module = pytest.importorskip("langchain_qdrant")
    store = module.QdrantVectorStore(
        qdrant, "notes", DeterministicFakeEmbedding(size=8)
    )
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=45, chunk_overlap=12, add_start_index=True
    )
    documents = [
        Document(text, metadata={"source": name}) for name, text in TEXTS.items()
    ]
    store.add_documents(splitter.split_documents(documents))
    first = store.as_retriever(search_kwargs={"k": 99})
    found = SPScannerRetriever.from_retriever(
        first, scanner=tiny_scanner, k=None
    ).invoke(QUERY)
    spans = [
        (d.metadata["source"], d.metadata["start_index"], d.metadata["end_index"])
        for d in found
    ]
    assert {source for source, _, _ in spans} == set(TEXTS)
    assert [TEXTS[source][start:end] for source, start, end in spans] == [
        d.page_content for d in found
    ]
    assert len(set(spans)) == len(spans)  # overlaps are read only once


def test_llama_index_reads_the_nodes_of_a_store_alone(
    tiny_scanner: Scanner, qdrant: Any
) -> None:
    module = pytest.importorskip("llama_index.vector_stores.qdrant")
    documents = [
        LlamaDocument(text=text, id_=name, metadata={"name": name})
        for name, text in TEXTS.items()
    ]
    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(
            vector_store=module.QdrantVectorStore("notes", client=qdrant)
        ),
        transformations=[SentenceSplitter(chunk_size=28, chunk_overlap=8)],
        embed_model=MockEmbedding(8),
    )
    options: dict[str, Any] = {"scanner": tiny_scanner, "similarity_top_k": None}
    of_index = LlamaRetriever.from_index(index, **options).retrieve(
        QUERY
    )  # the store keeps the text
    assert {n.node.ref_doc_id for n in of_index} == set(TEXTS)
    first = index.as_retriever(similarity_top_k=1)
    whole = LlamaRetriever(
        retriever=first, documents=documents, order="document", **options
    ).retrieve(QUERY)
    read = "".join(n.node.get_content() for n in whole).replace(" ", "")
    assert read == TEXTS[str(whole[0].node.ref_doc_id)].replace(" ", "")
    first = index.as_retriever(similarity_top_k=100)
    found = LlamaRetriever(first_stage=first, **options).retrieve(QUERY)
    assert {n.node.ref_doc_id for n in found} == set(TEXTS)
    for scored in found:
        node: Any = scored.node
        assert node.get_content() in TEXTS[str(node.ref_doc_id)]
        if node.start_char_idx is not None:
            text = TEXTS[str(node.ref_doc_id)]
            assert text[node.start_char_idx : node.end_char_idx] == node.get_content()
