from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda

from tests.integrations import hosts
from tests.integrations.hosts import HARBOUR, ISLAND


class WordScorer(hosts.WordScorer):
    """Counts no tokens."""

    count_tokens: Any = None


class Events(BaseCallbackHandler):
    """Counts what a traced run sends."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.starts: list[dict[str, Any]] = []
        self.ends: list[Sequence[Document]] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.seen.append("start")
        self.starts.append({"query": query, **kwargs})

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        self.seen.append("end")
        self.ends.append(documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(type(error).__name__)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def word_scorer() -> WordScorer:
    return WordScorer()


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(
            page_content=HARBOUR,
            metadata={"source": "harbour.txt", "tags": ["sea", "town"]},
            id="h",
        ),
        Document(
            page_content=ISLAND,
            metadata={"source": "island.txt", "author": {"name": "A"}},
            id="i",
        ),
    ]


@pytest.fixture
def first_stage() -> Callable[[Sequence[Document]], Runnable[str, list[Document]]]:
    """A first stage that returns the given documents for any query."""

    def make(found: Sequence[Document]) -> Runnable[str, list[Document]]:
        return RunnableLambda(lambda query: list(found))

    return make
