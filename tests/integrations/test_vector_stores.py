"""Qdrant in memory as the first stage, as its users build it; skipped without it (extra ``dev``)."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as LlamaDocument
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter

from langchain_spscanner import SPScannerRetriever
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaRetriever
from spscanner_rag.scanner import Scanner

# Qdrant without a server says that it has no payload indexes, which LlamaIndex's class asks for.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

QUERY = "When does the viper sleep?"
TEXTS = {
    "soup": "Cut the leek. Boil the soup for an hour. Serve it with bread. The pot is hot. Salt it well.",
    "snake": "The viper is a snake. It eats mice in summer. It is shy. In winter the viper does sleep.",
    "treaty": "The council signed the treaty. The keeper wrote it down. It rained. The towns kept it well.",
    "mill": "The mill stood still. The river was dry. The miller left. His house was sold in spring.",
}
SIZE = 256


def vector(text: str) -> list[float]:
    """A bag of words, hashed."""
    found = np.zeros(SIZE)
    for word in re.findall(r"\w+", text.lower()):
        found[int(hashlib.sha256(word.encode()).hexdigest(), 16) % SIZE] += 1
    return (found / (np.linalg.norm(found) or 1)).tolist()


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class LlamaWords(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


@pytest.fixture
def qdrant() -> Iterator[Any]:
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture
def langchain_store(qdrant: Any) -> Callable[[Sequence[Document]], VectorStore]:
    """Makes a LangChain vector store of chunks."""

    def make(chunks: Sequence[Document]) -> VectorStore:
        models = pytest.importorskip("qdrant_client").models
        vectors = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
        qdrant.create_collection("notes", vectors_config=vectors)
        module = pytest.importorskip("langchain_qdrant")
        store: VectorStore = module.QdrantVectorStore(qdrant, "notes", Words())
        store.add_documents(list(chunks))
        return store

    return make


@pytest.fixture
def llama_store(qdrant: Any) -> Any:
    """An empty vector store of LlamaIndex."""
    module = pytest.importorskip("llama_index.vector_stores.qdrant")
    return module.QdrantVectorStore("notes", client=qdrant)


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(text, metadata={"source": f"{name}.txt", "n": n})
        for n, (name, text) in enumerate(TEXTS.items())
    ]


@pytest.fixture
def chunks(documents: list[Document]) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=45, chunk_overlap=12, add_start_index=True)
    return splitter.split_documents(documents)


def test_langchain_joins_chunks(tiny_scanner: Scanner, chunks: list[Document], langchain_store: Any) -> None:
    first = langchain_store(chunks).as_retriever(search_kwargs={"k": len(chunks)})
    found = SPScannerRetriever.from_retriever(first, scanner=tiny_scanner, k=None).invoke(QUERY)
    assert {d.metadata["source"] for d in found} == {f"{name}.txt" for name in TEXTS}
    for result in found:
        text = TEXTS[result.metadata["source"].removesuffix(".txt")]
        assert text[result.metadata["start_index"] : result.metadata["end_index"]] == result.page_content
    spans = [(d.metadata["source"], d.metadata["start_index"]) for d in found]
    assert len(set(spans)) == len(spans)  # overlaps are read once


def llama_index_of(store: Any) -> tuple[VectorStoreIndex, list[LlamaDocument]]:
    documents = [LlamaDocument(text=text, id_=name, metadata={"name": name}) for name, text in TEXTS.items()]
    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=store),
        transformations=[SentenceSplitter(chunk_size=28, chunk_overlap=8)],
        embed_model=LlamaWords(),
    )
    return index, documents


def test_llama_index_reads_the_nodes_of_a_store_alone(tiny_scanner: Scanner, llama_store: Any) -> None:
    index, documents = llama_index_of(llama_store)
    options: dict[str, Any] = {"scanner": tiny_scanner, "similarity_top_k": None}
    of_index = LlamaRetriever.from_index(index, **options).retrieve(QUERY)  # the store keeps the text
    assert {n.node.ref_doc_id for n in of_index} == set(TEXTS)
    first = index.as_retriever(similarity_top_k=1)
    whole = LlamaRetriever(retriever=first, documents=documents, order="document", **options).retrieve(QUERY)
    read = "".join(n.node.get_content() for n in whole).replace(" ", "")
    assert read == TEXTS[str(whole[0].node.ref_doc_id)].replace(" ", "")
    first = index.as_retriever(similarity_top_k=100)
    found = LlamaRetriever(first_stage=first, scanner=tiny_scanner, similarity_top_k=None).retrieve(QUERY)
    assert {n.node.ref_doc_id for n in found} == set(TEXTS)
    for scored in found:
        node: Any = scored.node
        assert node.get_content() in TEXTS[str(node.ref_doc_id)]
        if node.start_char_idx is not None:
            text = TEXTS[str(node.ref_doc_id)]
            assert text[node.start_char_idx : node.end_char_idx] == node.get_content()
