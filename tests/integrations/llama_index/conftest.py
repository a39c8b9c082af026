"""A scorer without a model, documents with chunks, and a recorder of events."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document
from pydantic import PrivateAttr

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from tests.integrations.hosts import WordScorer
from tests.retrieval.searching import forget_shared_scanners

QUERY = "Who signed the treaty with the captain?"
LIGHTHOUSE = """\
The keeper of the lighthouse wrote the date in his book. He signed the treaty with the \
captain in May.
The ship left the harbour with three crates of tea. Nobody on the quay asked \
where it went.

The well on the island was dry. They left because the winter had been long. A report \
was written later.
It said that the harbour must be widened. The bell rang twice, then the rain began to \
fall on the roofs.
"""
HARBOUR = """\
The council met in the town hall on a Monday. The treaty was read aloud by the \
clerk. Two members slept.
The harbour was widened in 1911. The ship never came back to the harbour. The \
keeper retired to the hills.
"""


@pytest.fixture(autouse=True)
def _no_event_loop() -> None:
    """LlamaIndex opens an event loop in a thread without one.

    Left open, it would fail a later test.
    """
    asyncio.set_event_loop(None)


def reranked(nodes: Sequence[Any], **options: Any) -> list[Any]:
    """The postprocessor's result for `QUERY` with these options.

    By default its scorer is a `WordScorer`.
    """
    post = SPScannerPostprocessor(**{"scorer": WordScorer(), **options})
    return post.postprocess_nodes(list(nodes), query_str=QUERY)


@pytest.fixture
def word_scorer() -> WordScorer:
    return WordScorer()


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(
            text=LIGHTHOUSE,
            id_="lighthouse",
            metadata={"title": "Light", "tags": {"year": [1908]}},
        ),
        Document(
            text=HARBOUR,
            id_="harbour",
            metadata={"title": "Harbour", "tags": {"year": [1911]}},
        ),
    ]


@pytest.fixture
def chunks(documents: list[Document]) -> list[BaseNode]:
    """Nodes of about two sentences, with an overlap."""
    numbers = iter(range(1000))
    splitter = SentenceSplitter(
        chunk_size=40,
        chunk_overlap=14,
        include_metadata=True,
        id_func=lambda i, doc: f"chunk-{next(numbers)}",
    )
    bare = [
        document.model_copy(
            update={
                "excluded_embed_metadata_keys": ["tags"],
                "excluded_llm_metadata_keys": ["tags"],
            }
        )
        for document in documents
    ]
    nodes = splitter.get_nodes_from_documents(bare)
    assert len(nodes) > 4
    return nodes


class _Events(BaseEventHandler):
    _seen: list[Any] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Events"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self._seen.append(event)


@dataclass
class Recorder:
    """What the framework's two kinds of tracing recorded."""

    events: list[Any]
    spans: SimpleSpanHandler
    callbacks: LlamaDebugHandler = field(
        default_factory=lambda: LlamaDebugHandler(print_trace_on_end=False)
    )

    @property
    def manager(self) -> CallbackManager:
        return CallbackManager([self.callbacks])

    def named(self, name: str) -> list[Any]:
        return [event for event in self.events if event.class_name() == name]

    def span_names(self) -> list[str]:
        """Of closed spans."""
        return [span.id_.rsplit("-", 5)[0] for span in self.spans.completed_spans]

    def dropped_span_names(self) -> list[str]:
        return [span.id_.rsplit("-", 5)[0] for span in self.spans.dropped_spans]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    root = get_dispatcher()
    events, spans = _Events(), SimpleSpanHandler()
    before = list(root.event_handlers), list(root.span_handlers)
    root.add_event_handler(events)
    root.add_span_handler(spans)
    yield Recorder(events._seen, spans)
    root.event_handlers, root.span_handlers = before


@pytest.fixture
def no_shared_scanners() -> Iterator[None]:
    """Begin as in a process that has not loaded any scanner."""
    forget_shared_scanners()
    yield
    forget_shared_scanners()
