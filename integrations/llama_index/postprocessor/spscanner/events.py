"""Reranking events for LlamaIndex: each start event is followed by an end event, even after an error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle

dispatcher = get_dispatcher(__name__)


@contextmanager
def reranking(
    callbacks: CallbackManager,
    query: QueryBundle,
    nodes: Sequence[NodeWithScore],
    top_n: int,
    model_name: str,
) -> Iterator[list[NodeWithScore]]:
    """Send start and end events; the body fills the list of nodes, which is empty after an error."""
    found: list[NodeWithScore] = []
    dispatcher.event(ReRankStartEvent(query=query, nodes=list(nodes), top_n=top_n, model_name=model_name))
    payload: dict[str, Any] = {
        EventPayload.NODES: list(nodes),
        EventPayload.MODEL_NAME: model_name,
        EventPayload.QUERY_STR: query.query_str,
        EventPayload.TOP_K: top_n,
    }
    try:
        with callbacks.event(CBEventType.RERANKING, payload=payload) as event:
            yield found
            event.on_end(payload={EventPayload.NODES: list(found)})
    except BaseException:
        found.clear()
        raise
    finally:
        dispatcher.event(ReRankEndEvent(nodes=list(found)))
