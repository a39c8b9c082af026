import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeWithScore, TextNode

from langchain_spscanner import SPScannerCompressor

QUERY = "Who signed the treaty?"


def split(documents: Sequence[Document], **options: Any) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=60, chunk_overlap=0, add_start_index=True, **options
    )
    return splitter.split_documents(documents)


def test_in_a_contextual_compression_retriever(
    word_scorer: Any, documents: list[Document]
) -> None:
    retriever = ContextualCompressionRetriever(
        base_compressor=SPScannerCompressor(scorer=word_scorer, k=2),
        base_retriever=RunnableLambda(lambda query: split(documents)),
    )
    found = retriever.invoke("Who signed the treaty on the island?")
    assert found[0].page_content.startswith("Captain Moore signed the treaty")
    assert (
        documents[1]
        .page_content[found[0].metadata["start_index"] :]
        .startswith(found[0].page_content)
    )
    assert (
        asyncio.run(retriever.ainvoke("Who signed the treaty on the island?")) == found
    )


def test_other_input_is_refused_by_name(documents: list[Document]) -> None:
    compressor = SPScannerCompressor(model="no/such-model")
    with pytest.raises(TypeError, match="query: got int; expected a string"):
        compressor.compress_documents(documents, 3)
    with pytest.raises(TypeError, match="documents: got str"):
        compressor.compress_documents(["text"], QUERY)
    for other in (
        TextNode(text="A."),
        LlamaIndexDocument(text="A."),
        NodeWithScore(node=TextNode(text="A.")),
    ):
        with pytest.raises(
            TypeError,
            match=r"documents: got a LlamaIndex node \(convert it: Document\(",
        ):
            compressor.compress_documents([other], QUERY)
