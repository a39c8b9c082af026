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

from llama_index.postprocessor.spscanner.nodes import (
    AUTO,
    GroupBy,
    NodeAnswer,
    by_id,
    read_nodes,
    with_scores,
)
from spscanner_rag.retrieval import ScanFields, SentenceSearch, loading_options
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
    """

    limits: ClassVar = ("top_n", "top_n_per_document")
    shared_by_copies: ClassVar = (
        "callback_manager", "scanner", "scorer", "documents", "docstore", "count_tokens", "prompt"
    )  # fmt: skip

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
        by_id(self.documents or ())
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
        with self._reranking(nodes, query_bundle) as (found, _, answer):
            found += answer(never)
        return found

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._reranking(nodes, query_bundle) as (found, search, answer):
            if nodes:
                found += await search.off_loop(answer)
        return found

    @contextmanager
    def _reranking(
        self, nodes: Sequence[NodeWithScore], asked: QueryBundle | None
    ) -> Iterator[
        tuple[
            list[NodeWithScore],
            SentenceSearch,
            Callable[[Cancelled], list[NodeWithScore]],
        ]
    ]:
        """Send the events; the body fills the list with what the function returns, and an error empties it."""
        query = check_query(asked.query_str if asked else None)
        given, search, found = with_scores(nodes), self.sentence_search(), list[NodeWithScore]()

        def answer(cancelled: Cancelled) -> list[NodeWithScore]:
            texts = read_nodes(
                given,
                by_id(self.documents or ()),
                self.docstore,
                self.group_by,
                self.document_key,
            )
            return search.answer(query, texts, NodeAnswer, cancelled)

        model, most = (
            search.choice.name,
            self.top_n if isinstance(self.top_n, int) else len(given),
        )
        dispatcher.event(
            ReRankStartEvent(
                query=asked, nodes=list(given), top_n=most, model_name=model
            )
        )
        payload: dict[str, Any] = {
            EventPayload.NODES: list(given),
            EventPayload.MODEL_NAME: model,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: most,
        }
        try:
            with self.callback_manager.event(
                CBEventType.RERANKING, payload=payload
            ) as event:
                yield found, search, answer
                event.on_end(payload={EventPayload.NODES: list(found)})
        except BaseException:
            found.clear()
            raise
        finally:
            dispatcher.event(ReRankEndEvent(nodes=list(found)))

    @field_serializer(
        "model", "device", "dtype", "model_kwargs", "scorer", "count_tokens", "prompt"
    )
    def _stored(self, value: Any, info: FieldSerializationInfo) -> Any:  # noqa: ANN401 - of several fields
        if self.scanner is not None:
            value = loading_options(self.scanner).get(str(info.field_name), value)
        if info.field_name == "model_kwargs":
            return {
                name: _plain(option)
                for name, option in value.items()
                if name != "token"
            }
        return _plain(value)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # The base class silently drops what cannot be pickled; a copy without its
        # scorer would use another one.
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name != "callback_manager"
        }
        if self.scanner is not None:
            state |= {**loading_options(self.scanner), "scanner": None}
        state["model_kwargs"] = {
            k: v for k, v in state["model_kwargs"].items() if k != "token"
        }
        return partial(type(self), **state), ()


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
