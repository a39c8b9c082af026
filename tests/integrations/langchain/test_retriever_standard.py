"""LangChain's own standard tests for retrievers, with sockets disabled."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_spscanner import SPScannerRetriever

# The suite's one coroutine function; with asyncio_mode = "auto" it would need no mark.
# Ours use asyncio.run.
pytest.mark.asyncio(RetrieversIntegrationTests.test_ainvoke_returns_documents)

TEXT = (
    "The well was dry. The winter was long. The council signed a treaty. Then the"
    " people left the island."
)


class _Standard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _model(self, tiny_checkpoint: Path) -> None:
        self.options = {
            "model": str(tiny_checkpoint),
            "device": "cpu",
            "dtype": "float32",
        }

    @property
    def retriever_constructor(self) -> type[SPScannerRetriever]:
        return SPScannerRetriever

    @property
    def retriever_query_example(self) -> str:
        return "Who signed the treaty?"


class TestDocuments(_Standard):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {
            **self.options,
            "documents": [Document(TEXT), Document("Ships came. Bells rang.")],
        }


class TestFirstStage(_Standard):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        store.add_texts([TEXT, "Ships came. Bells rang."])
        return {**self.options, "retriever": store.as_retriever(search_kwargs={"k": 2})}
