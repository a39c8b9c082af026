"""The node postprocessor: reduces retrieved nodes to their best sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import (
    ReRankEndEvent,
    ReRankStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore
from pydantic import (
    Field,
    FieldSerializationInfo,
    SkipValidation,
    field_serializer,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from llama_index.postprocessor.spscanner.node_answer import NodeAnswer
from llama_index.postprocessor.spscanner.node_groups import AUTO
from llama_index.postprocessor.spscanner.node_relations import (
    nodes_by_id,
    with_scores,
)
from llama_index.postprocessor.spscanner.read_nodes import GroupBy, read_nodes
from spscanner_rag.retrieval import (
    ScanFields,
    SentenceSearch,
    loading_options,
    without_token,
)
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, check_query, never

dispatcher = get_dispatcher(__name__)


class SPScannerPostprocessor(ScanFields, BaseNodePostprocessor):
    """Selects the best sentences of the retrieved nodes.

    The nodes of one document are read as one text, in reading order, and every sentence
    of it gets a score. Each selected sentence becomes a new node; the given nodes do
    not change. A result is a `ScannedNode`: a `NodeWithScore` that also has the logit
    and the document's score.

    The fields of `ScanFields` and those below set which model scores and which
    sentences are selected. `to_dict` stores neither ``documents`` nor ``docstore``, and
    only the name of a ``scorer``, ``prompt`` or ``count_tokens`` that is an object:
    pass the object again to ``from_dict(data, scorer=...)``.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown argument or a value out of range.

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> lease = TextNode(text="The lease began in May. Ada Byrne signed it.")
    >>> postprocessor = SPScannerPostprocessor(top_n=1)
    >>> best = postprocessor.postprocess_nodes([lease], query_str="Who signed?")[0]
    >>> best.node.text, best.node.start_char_idx, best.node.end_char_idx
    ('Ada Byrne signed it.', 24, 44)
    """

    limits: ClassVar = ("top_n", "top_n_per_document")
    shared_by_copies: ClassVar = (
        "callback_manager",
        "scanner",
        "scorer",
        "documents",
        "docstore",
        "count_tokens",
        "prompt",
    )

    scanner: SkipJsonSchema[SkipValidation[Scanner | None]] = Field(
        default=None, exclude=True, repr=False
    )
    """A loaded scanner, instead of ``model``.

    `to_dict` and pickle store the arguments that load it again.
    """

    top_n: SkipValidation[int | float | str | None] = 50
    """Sentences to select: a number of at least 1, a share below 1 (at least 10
    sentences), "elbow" or "elbow:5-30" for those before the steepest fall of the
    sorted scores, or None for all."""

    top_n_per_document: SkipValidation[int | None] = None
    """Maximum number of sentences of each document, neighbours not counted."""

    group_by: GroupBy = "document"
    """What is read as one text: all nodes of a document, or each node alone."""

    document_key: str | None = AUTO
    """Metadata key. Documents that share its value are read as one text, sorted by
    page number. "auto": those with a ``page_label`` or ``page`` that share a
    ``file_path``, or else a ``file_name``. None: each is read alone."""

    documents: SkipJsonSchema[Sequence[BaseNode] | None] = Field(
        default=None, exclude=True, repr=False
    )
    """Whole documents that the nodes were cut from. They are read instead of their
    nodes, so that every sentence is scored within the whole text."""

    docstore: SkipJsonSchema[BaseDocumentStore | None] = Field(
        default=None, exclude=True, repr=False
    )
    """Store in which such documents, or all of their nodes, are looked up by the id
    of a node's SOURCE."""

    @model_validator(mode="after")
    def _check_documents(self) -> Self:
        nodes_by_id(self.documents or ())
        if self.top_n_per_document is not None and self.group_by == "node":
            raise ValueError(
                f"top_n_per_document: got {self.top_n_per_document} with"
                ' group_by="node", which reads each node alone; expected'
                ' group_by="document"'
            )
        return self

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "SPScannerPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        call = self._call(nodes, query_bundle)
        with self._events(call) as results:
            results += call.answer(never)
        return results

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        call = self._call(nodes, query_bundle)
        with self._events(call) as results:
            if nodes:
                results += await call.search.off_loop(call.answer)
        return results

    def _call(
        self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None
    ) -> "PostprocessorCall":
        query = check_query(query_bundle.query_str if query_bundle else None)
        return PostprocessorCall(self, query, query_bundle, with_scores(nodes))

    @contextmanager
    def _events(self, call: "PostprocessorCall") -> Iterator[list[NodeWithScore]]:
        """Send the events of a call.

        The body fills the list with the results; an error empties it.
        """
        nodes = call.nodes
        top_n = self.top_n if isinstance(self.top_n, int) else len(nodes)
        model = call.search.choice.name
        start_event = ReRankStartEvent(
            query=call.query_bundle, nodes=list(nodes), top_n=top_n, model_name=model
        )
        dispatcher.event(start_event)
        payload: dict[str, Any] = {
            EventPayload.NODES: list(nodes),
            EventPayload.MODEL_NAME: model,
            EventPayload.QUERY_STR: call.query,
            EventPayload.TOP_K: top_n,
        }
        results: list[NodeWithScore] = []
        try:
            with self.callback_manager.event(
                CBEventType.RERANKING, payload=payload
            ) as event:
                yield results
                event.on_end(payload={EventPayload.NODES: list(results)})
        except BaseException:
            results.clear()
            raise
        finally:
            dispatcher.event(ReRankEndEvent(nodes=list(results)))

    @field_serializer(
        "model",
        "device",
        "dtype",
        "backend",
        "model_kwargs",
        "scorer",
        "count_tokens",
        "prompt",
    )
    def _stored(self, value: Any, info: FieldSerializationInfo) -> Any:  # noqa: ANN401 - of several fields
        if self.scanner is not None:
            value = loading_options(self.scanner).get(str(info.field_name), value)
        if info.field_name == "model_kwargs":
            options = without_token(value)
            return {name: _plain(option) for name, option in options.items()}
        return _plain(value)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # The base class silently drops what cannot be pickled; a copy without its
        # scorer would use another one.
        state = dict(self.__dict__)
        state.pop("callback_manager", None)
        if self.scanner is not None:
            state |= {**loading_options(self.scanner), "scanner": None}
        state["model_kwargs"] = without_token(state["model_kwargs"])
        return partial(type(self), **state), ()


class PostprocessorCall:
    """One call of a postprocessor, checked before any event.

    Parameters
    ----------
    postprocessor : SPScannerPostprocessor
        Its fields say what is read and selected.
    query : str
        The query.
    query_bundle : QueryBundle, optional
        The query as LlamaIndex passes it.
    nodes : list of NodeWithScore
        What is read.
    """

    def __init__(
        self,
        postprocessor: SPScannerPostprocessor,
        query: str,
        query_bundle: QueryBundle | None,
        nodes: list[NodeWithScore],
    ) -> None:
        self.query = query
        self.query_bundle = query_bundle
        self.nodes = nodes
        self.search: SentenceSearch = postprocessor.sentence_search()
        self._postprocessor = postprocessor

    def answer(self, cancelled: Cancelled) -> list[NodeWithScore]:
        """Return the results, in a worker thread where the call is asynchronous."""
        texts = read_nodes(
            self.nodes,
            nodes_by_id(self._postprocessor.documents or ()),
            self._postprocessor.docstore,
            self._postprocessor.group_by,
            self._postprocessor.document_key,
        )
        return self.search.answer(self.query, texts, NodeAnswer, cancelled)


def _plain(value: object) -> object:
    """A value as JSON can hold it.

    Any other object becomes its name, which is refused when it is read back.
    """
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float | Mapping):
        return value
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{getattr(kind, '__qualname__', kind)}"
