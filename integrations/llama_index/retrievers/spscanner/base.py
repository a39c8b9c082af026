"""The retriever: finds the best sentences of whole documents."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.constants import DATA_KEY
from llama_index.core.data_structs.data_structs import IndexGraph
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from pydantic import SkipValidation

from llama_index.postprocessor.spscanner.base import dispatcher
from llama_index.postprocessor.spscanner.nodes import (
    AUTO,
    NodeAnswer,
    WholeDocuments,
    by_id,
    kind_of,
    read_nodes,
    source_id,
)
from spscanner_rag.retrieval import (
    HeldCorpus,
    Hit,
    Host,
    ReadText,
    RetrieverFields,
    check_json,
)
from spscanner_rag.scorers import Cancelled, check_query, never


class NodeRetrieverFields(RetrieverFields):
    """The retriever's options that can be checked without its nodes."""

    limits: ClassVar = ("similarity_top_k", "top_k_per_document")
    other_stages: ClassVar = (
        BaseRetriever,
        "a BaseRetriever, such as index.as_retriever()",
    )

    similarity_top_k: SkipValidation[int | float | str | None] = 50
    top_k_per_document: SkipValidation[int | None] = None
    filters: SkipValidation[MetadataFilters | None] = None
    document_key: str | None = AUTO

    def shown(self) -> str:
        """``name=value`` of the number of sentences, the first stage and all options that were given."""
        values = {"similarity_top_k": self.similarity_top_k, "first_stage": self.stage}
        values |= {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name in self.model_fields_set
        }
        values.pop("retriever", None)  # shown as the first stage
        return ", ".join(f"{name}={value!r:.60}" for name, value in values.items())


class SPScannerRetriever(BaseRetriever):
    """Retrieves the best sentences of whole documents.

    The scanner reads the question and documents from beginning to end. Each selected
    sentence becomes a new node.

    If there are more documents than ``read_documents`` and ``read_tokens`` allow, a
    first stage chooses those that are read for a question. The words of all documents
    are counted when the retriever is built, and those of documents added later with the
    next question. Scores are relative to all documents, whichever are read.

    Parameters
    ----------
    nodes : sequence of nodes, optional
        Documents, or the chunks they were cut into: chunks of one document are joined
        in reading order. Required unless the first stage is a retriever; it may be
        empty, and `add` adds more.
    documents : sequence of nodes, optional
        Whole documents that chunks in ``nodes``, or chunks that a retriever finds, were
        cut from. They are read instead of their chunks.
    docstore : BaseDocumentStore, optional
        Document store in which such documents are looked up by id.
    similarity_top_k : int, float or str, default 50
        Sentences to select: a number of at least 1, a share below 1 (at least 10
        sentences), "elbow" or "elbow:5-30" for those before the steepest fall of the
        sorted scores, or None for all.
    top_k_per_document : int, optional
        Maximum number of sentences of each document, neighbours not counted.
    first_stage, retriever, read_documents, read_tokens
        As for `RetrieverFields`; a first stage is a `BaseRetriever`.
    filters : MetadataFilters, optional
        Only nodes whose metadata pass these filters give results. Scores remain
        relative to all documents. If no node passes, nothing is retrieved.
    **options
        Which model scores, and what is selected: the fields of `ScanFields`, and
        ``document_key`` as for `SPScannerPostprocessor`. With ``keep_retrieval_score``,
        results have the first stage's best score for their document.
    callback_manager, object_map, objects, verbose
        See `BaseRetriever`.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range or of the wrong type, a model or device that does
        not exist, or if both nodes and a retriever are missing.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        documents: Sequence[BaseNode] = (),
        docstore: BaseDocumentStore | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
        **options: Any,  # noqa: ANN401 - the fields of `NodeRetrieverFields`
    ) -> None:
        own = NodeRetrieverFields(**options)
        self._search, self._settings = own.sentence_search(), own.shown()
        self._filters = own.filters
        if own.filters is not None:
            node_filter(own.filters)  # raises for a filter that it cannot test
        if nodes is None and isinstance(own.stage, str):
            raise ValueError(
                "nodes: got neither nodes nor a retriever; expected at least one:"
                " from_documents(...), from_nodes(...), from_index(...) or"
                " retriever=...; documents and docstore only supply the whole texts of"
                " nodes (for all nodes of a docstore:"
                " from_nodes(list(docstore.docs.values()), docstore=docstore)), and"
                " nodes=[] makes an empty retriever"
            )
        if (
            nodes is None
        ):  # with a first stage, as from_documents(documents, first_stage=...)
            nodes, documents = documents, ()
        empty = HeldCorpus(_NodeHost(by_id(documents), docstore, own.document_key))
        super().__init__(callback_manager, object_map, objects, verbose)
        self._held = empty.adding(as_items(nodes or (), self.object_map))
        self._held.counted()  # now, and not while the first question waits

    def __repr__(self) -> str:
        count = len(self.ref_doc_ids)
        return (
            f"{type(self).__name__}(<{count} document{'' if count == 1 else 's'}>,"
            f" {self._settings})"
        )

    @classmethod
    def from_documents(cls, documents: Sequence[Document], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from documents of any length.

        ``options`` are the other parameters of the class.
        """
        return cls(documents, **options)

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents that nodes were cut from, such as those of an `IngestionPipeline`.

        ``options`` are the others of the class; with ``documents`` or ``docstore``, the
        whole texts are read.
        """
        return cls(nodes, **options)

    @classmethod
    def from_index(cls, index: BaseIndex[Any], **options: Any) -> Self:  # noqa: ANN401
        """Retrieve from the documents of an index.

        Documents added to it later are not seen.

        ``options`` are the other parameters of the class. Where a vector store keeps
        the text, as those of Chroma and Qdrant do, its nodes are read. ``ValueError``
        if it cannot list them.
        """
        defaults = {
            name: getattr(index, f"_{name}", None)
            for name in ("callback_manager", "object_map")
        }
        return cls(
            index_nodes(index), **{"docstore": index.docstore, **defaults, **options}
        )

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:  # noqa: ANN401
        """Read what `persist` wrote.

        ``options`` are the other parameters of the class, such as ``docstore``.

        The retriever uses the folder's arrays from disk: keep the folder as long as the
        retriever. ``ValueError`` if the folder is missing, damaged, or was not written
        by `persist` of this class.
        """
        retriever = cls((), **options)
        retriever._held = HeldCorpus.load(path, retriever._held.host)
        retriever._held.counted()
        return retriever

    def persist(self, path: str | Path) -> None:
        """Write the nodes and documents, their word counts and vectors to a folder, completely or not at all.

        A scanner with an encoder, such as the bundled one, is loaded for this and
        computes the missing vectors. The folder must be new, empty, or written by
        `persist` before; its content is replaced. ``ValueError`` if it holds anything
        else, or if metadata hold values that JSON cannot keep.
        """
        self._held.persist(path, self._search.meaning)

    @property
    def ref_doc_ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return self._held.ids

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add documents or nodes; one with a known id replaces the earlier one.

        Questions that are already being answered still see the documents as they were.
        """
        items = as_items(nodes, self.object_map)
        with HeldCorpus.changing:
            self._held = self._held.adding(items)

    def delete(self, *ref_doc_ids: str) -> None:
        """Delete documents and their nodes.

        An unknown id raises ``ValueError``, and nothing is deleted.
        """
        with HeldCorpus.changing:
            self._held = self._held.deleting(ref_doc_ids)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first: Any = self._search.first_stage
        found = None if isinstance(first, str) else first.retrieve(query_bundle)
        return self._sentences(query_bundle, found)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first: Any = self._search.first_stage
        found = None if isinstance(first, str) else await first.aretrieve(query_bundle)
        return await self._search.off_loop(
            lambda cancelled: self._sentences(query_bundle, found, cancelled)
        )

    def _sentences(
        self, query: QueryBundle, found: object, cancelled: Cancelled = never
    ) -> list[NodeWithScore]:
        text = check_query(query.query_str)
        passes = None if self._filters is None else node_filter(self._filters)
        admits = None if passes is None else lambda scored: passes(scored.node)
        return self._search.answer_from(
            self._held, text, _FollowedAnswer, admits, found, cancelled
        )


@dataclass(frozen=True, eq=False)
class _NodeHost(Host[NodeWithScore]):
    """How LlamaIndex's nodes are held.

    ``documents``, by id, and ``docstore`` have the whole texts of chunks.
    """

    documents: Mapping[str, BaseNode]
    docstore: BaseDocumentStore | None
    document_key: str | None

    framework = "llama-index"
    items_name = "nodes with scores"

    def key(self, item: NodeWithScore) -> str:
        return item.node.node_id

    def document(self, item: NodeWithScore) -> str:
        return source_id(item.node)

    def join(self, items: Sequence[NodeWithScore]) -> list[ReadText[NodeWithScore]]:
        return read_nodes(
            items, self.documents, self.docstore, document_key=self.document_key
        )

    def finder(
        self, items: Sequence[NodeWithScore], texts: Sequence[ReadText[NodeWithScore]]
    ) -> Callable[[NodeWithScore], int | None]:
        numbers = {
            run.source: number
            for number, text in enumerate(texts)
            for run in text.joined.runs
        }
        held = (
            texts[0].items if texts else ()
        )  # each node is tied to its whole document by now
        wholes = WholeDocuments(
            [*self.documents.values(), *(item.node for item in held)]
        )
        return lambda scored: numbers.get(source_id(wholes.tied(scored).node))

    def score(self, found: Sequence[NodeWithScore]) -> float | None:
        return max(
            (scored.score for scored in found if scored.score is not None), default=None
        )

    def without(self, ids: Collection[str]) -> Self:
        kept = {
            name: document
            for name, document in self.documents.items()
            if name not in ids
        }
        return replace(self, documents=kept)

    def records(self, items: Sequence[NodeWithScore]) -> Iterable[Mapping[str, Any]]:
        yield from ({"role": "node", "node": _record(scored.node)} for scored in items)
        yield from (
            {"role": "document", "node": _record(whole)}
            for whole in self.documents.values()
        )

    def restored(
        self, records: Sequence[Mapping[str, Any]]
    ) -> tuple[Self, Sequence[NodeWithScore]]:
        held: dict[str, list[BaseNode]] = {"node": [], "document": []}
        for record in records:
            held[record["role"]].append(json_to_doc(record["node"]))
        documents = {document.node_id: document for document in held["document"]}
        return replace(self, documents=documents), [
            NodeWithScore(node=node) for node in held["node"]
        ]


def as_items(
    nodes: Iterable[BaseNode], objects: Mapping[str, Any] | None = None
) -> list[NodeWithScore]:
    """Wrap nodes to hold them; different nodes need different ids.

    ``objects`` has the objects of index nodes.
    """
    own = []
    for number, node in enumerate(nodes):
        if not isinstance(node, BaseNode):
            raise TypeError(
                f"nodes[{number}] is {kind_of(node)}; expected a Document or a node"
            )
        if (
            isinstance(node, IndexNode)
            and node.obj is None
            and objects
            and node.index_id in objects
        ):
            node = node.model_copy(update={"obj": objects[node.index_id]})
        own.append(node)
    return [NodeWithScore(node=node) for node in by_id(own, "nodes").values()]


class _FollowedAnswer(NodeAnswer):
    """Results that keep an `IndexNode` with an object whole, so that the base class can query that object."""

    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        node = text.items[hit.place.piece].node
        if not isinstance(node, IndexNode) or node.obj is None:
            super().add_sentence(hit, text)
        elif all(found.node is not node for found in self.results):
            self.add_piece(hit, text, hit.place.piece, "", {})


def _record(node: BaseNode) -> dict[str, Any]:
    if type(node).__module__ != BaseNode.__module__:
        raise ValueError(
            f"node {node.node_id!r} is {type(node).__name__}; expected one of"
            " LlamaIndex's own node classes, which it can read from JSON: convert it"
            " before persist"
        )
    # Checked first: LlamaIndex turns objects in metadata into dictionaries, which
    # cannot be noticed afterwards.
    check_json(node.metadata, "metadata", f"node {node.node_id!r}")
    record: dict[str, Any] = doc_to_json(node)
    if record[DATA_KEY].get("text_resource"):
        record[DATA_KEY].pop("text", None)  # the same text again
    return record


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """All nodes of an index, from its document store or a vector store that keeps text, else ``ValueError``."""
    if stored := index.docstore.docs:
        names = _source_ids(index.index_struct)
        return (
            list(stored.values())
            if names is None
            else [stored[name] for name in names if name in stored]
        )
    store = getattr(index, "vector_store", None)
    nodes: list[BaseNode] = []
    if store is not None and store.stores_text:
        with suppress(
            Exception
        ):  # many stores have no such method, or want ids or filters
            limited = "limit" in inspect.signature(store.get_nodes).parameters
            most = {"limit": 2**31 - 1} if limited else {}  # Qdrant's default is 9,999
            nodes = [
                node
                for node in store.get_nodes(node_ids=None, **most)
                if isinstance(node, BaseNode)
            ]
    if not nodes:
        keeper = (
            f", and its {type(store).__name__} lists no nodes"
            if store is not None
            else ""
        )
        raise ValueError(
            f"the docstore of this {type(index).__name__} is empty{keeper}; expected"
            " nodes: to read the documents that it retrieves, use"
            " SPScannerRetriever(retriever=index.as_retriever(), documents=documents)"
        )
    return nodes


def _source_ids(struct: object) -> list[str] | None:
    """Ids of one index's nodes in a shared store, without those that it generated.

    None if it lists none.
    """
    if isinstance(struct, IndexDocumentSummary):
        return list(struct.node_id_to_summary_id)
    if isinstance(
        struct, IndexGraph
    ):  # a tree, in which a node with children is their summary
        children = struct.node_id_to_children_ids
        return [name for name in struct.all_nodes.values() if not children.get(name)]
    for attribute in ("nodes_dict", "all_nodes", "nodes", "node_ids"):
        ids = getattr(struct, attribute, None)
        if ids is not None:
            return list(ids.values() if isinstance(ids, Mapping) else ids)
    return None


NodeFilter = Callable[[BaseNode], bool]


def node_filter(filters: MetadataFilters) -> NodeFilter:
    """A function that is true if a node's metadata pass the filters.

    ``TypeError`` for any other object.
    """
    if not isinstance(filters, MetadataFilters):
        raise TypeError(
            f"filters is {type(filters).__name__}; expected"
            " llama_index.core.vector_stores.MetadataFilters"
        )
    parts = [
        node_filter(part) if isinstance(part, MetadataFilters) else _single(part)
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return lambda node: not parts or any(part(node) for part in parts)
    if filters.condition == FilterCondition.NOT:
        return lambda node: not any(part(node) for part in parts)
    return lambda node: all(part(node) for part in parts)


def _single(part: MetadataFilter) -> NodeFilter:
    # LlamaIndex's function takes a key to look metadata up by; here the metadata are
    # their own key.
    lookup: Callable[[Any], Any] = build_metadata_filter_fn(
        lambda metadata: metadata,  # type: ignore[arg-type, return-value]
        MetadataFilters(filters=[part]),
    )
    return lambda node: bool(lookup(node.metadata))


# So that help() and editors show the fields that ``options`` stands for.
_own = [
    each
    for each in inspect.signature(SPScannerRetriever).parameters.values()
    if each.name != "options"
]
_fields = inspect.signature(NodeRetrieverFields).parameters.values()
SPScannerRetriever.__signature__ = inspect.Signature([*_own, *_fields])  # type: ignore[attr-defined]
