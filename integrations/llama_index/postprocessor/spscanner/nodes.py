"""Turn LlamaIndex nodes into texts to scan, by offsets, links and whole documents, and results into nodes."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar, Literal

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import BaseDocumentStore
from typing_extensions import override

from spscanner_rag.retrieval import (
    ID_KEY,
    SCORE_KEYS,
    Answer,
    Hit,
    Piece,
    ReadText,
    is_random_id,
    join_pieces,
    page_label,
    page_number,
    result_metadata,
)

AUTO = "auto"  # the `document_key` that joins the pages of a file to one document
_FILES = ("file_path", "file_name")
_PAGES = ("page_label", "page")  # the keys that LlamaIndex's readers use
_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")
# maximum white space, in characters, that a splitter may drop before the first chunk
_MOST_BEFORE = 64

GroupBy = Literal["document", "node"]


def with_scores(nodes: Iterable[NodeWithScore | BaseNode]) -> list[NodeWithScore]:
    """Wrap bare nodes in a `NodeWithScore` without a score."""
    found = []
    for number, node in enumerate(nodes):
        if not isinstance(node, BaseNode | NodeWithScore):
            raise TypeError(
                f"nodes[{number}] is {kind_of(node)}; expected a NodeWithScore or a"
                " node"
            )
        found.append(NodeWithScore(node=node) if isinstance(node, BaseNode) else node)
    return found


def kind_of(value: object) -> str:
    """What a value is that is not a node, for error messages."""
    if hasattr(value, "page_content"):
        return (
            "a LangChain Document (convert it: Document(text=it.page_content,"
            " metadata=it.metadata))"
        )
    return type(value).__name__


def text_of(node: BaseNode) -> str:
    """The text of a node without its metadata; empty for an image."""
    if isinstance(node, ImageNode | ImageDocument):
        return ""
    return node.get_content(metadata_mode=MetadataMode.NONE) or ""


def related(node: BaseNode, relationship: NodeRelationship) -> RelatedNodeInfo | None:
    """The related node of a kind; None unless there is exactly one."""
    info = node.relationships.get(relationship)
    return info if isinstance(info, RelatedNodeInfo) else None


def source_id(node: BaseNode) -> str:
    """Id of the document that a node was cut from, else of the node itself."""
    source = related(node, NodeRelationship.SOURCE)
    return node.node_id if source is None else source.node_id


def group_of(node: BaseNode, document_key: str | None) -> Hashable | None:
    """A key that is equal for nodes whose documents are read as one text.

    None if a document is read alone.
    """
    if document_key != AUTO:
        value = None if document_key is None else node.metadata.get(document_key)
        return value if isinstance(value, str | int | float | None) else repr(value)
    if page_label(node.metadata, _PAGES) is None:
        return None
    return next(iter(_files_of(node)), None)


def read_nodes(
    nodes: Sequence[NodeWithScore],
    documents: Mapping[str, BaseNode],
    docstore: BaseDocumentStore | None,
    group_by: GroupBy = "document",
    document_key: str | None = AUTO,
) -> list[ReadText[NodeWithScore]]:
    """Join the nodes of each document, or of each `group_of`, within its whole text if that is available."""
    wholes = WholeDocuments(documents.values())
    pieces, owners = _pieces(
        [wholes.tied(scored) for scored in nodes] if documents else nodes, document_key
    )
    sources: dict[Hashable, str] = {}
    if group_by == "node":
        pieces = [replace(piece, group=number) for number, piece in enumerate(pieces)]
    else:
        names = dict.fromkeys(source_id(scored.node) for scored in owners)
        texts = ((name, _whole_text(name, documents, docstore)) for name in names)
        sources.update((name, text) for name, text in texts if text)
    return [ReadText(joined, owners) for joined in join_pieces(pieces, sources)]


class WholeDocuments:
    """Finds the document of a node whose SOURCE is unknown: the only one of the same file that has its text."""

    def __init__(self, documents: Iterable[BaseNode]) -> None:
        self._ids, self._of_file = set[str](), dict[tuple[str, str], list[BaseNode]]()
        for document in documents:
            self._ids.add(source_id(document))
            for file in _files_of(document):
                self._of_file.setdefault(file, []).append(document)

    def tied(self, scored: NodeWithScore) -> NodeWithScore:
        """Return the node, or a copy tied to its document if that was read again and has a new id now."""
        node = scored.node
        if source_id(node) in self._ids:
            return scored
        text = text_of(node)
        among = next(
            (self._of_file[file] for file in _files_of(node) if file in self._of_file),
            [],
        )
        found = {
            source_id(whole): whole
            for whole in among
            if text and text in text_of(whole)
        }
        if len(found) != 1:
            return scored
        _, whole = found.popitem()  # or a chunk of it
        source = related(whole, NodeRelationship.SOURCE) or whole.as_related_node_info()
        relationships = {**node.relationships, NodeRelationship.SOURCE: source}
        own = node.model_copy(update={"relationships": relationships})
        return scored.model_copy(update={"node": own})


def _files_of(node: BaseNode) -> list[tuple[str, str]]:
    return [(key, str(node.metadata[key])) for key in _FILES if node.metadata.get(key)]


def by_id(nodes: Iterable[BaseNode], name: str = "documents") -> dict[str, BaseNode]:
    """The nodes by their ids; ``ValueError`` if two different ones have the same id."""
    own: dict[str, BaseNode] = {}
    for node in nodes:
        known = own.setdefault(node.node_id, node)
        if known is not node and (text_of(known), known.metadata) != (
            text_of(node),
            node.metadata,
        ):
            raise ValueError(
                f"{name}: got two different ones with the id {node.node_id!r}; expected"
                " a different id for each"
            )
    return own


def _whole_text(
    name: str, documents: Mapping[str, BaseNode], docstore: BaseDocumentStore | None
) -> str:
    """A document's text, or the text of all of its nodes in the store.

    Empty if neither is available.
    """
    text = text_of(documents[name]) if name in documents else ""
    if text or docstore is None:
        return text
    document = docstore.get_document(name, raise_error=False)
    if document is not None:
        return text_of(document)
    info = docstore.get_ref_doc_info(name)
    nodes = (
        []
        if info is None
        else docstore.get_nodes(list(info.node_ids), raise_error=False)
    )
    pieces, _ = _pieces([NodeWithScore(node=node) for node in nodes], None)
    joined = join_pieces(pieces)
    if len(joined) != 1 or len(joined[0].runs) != 1:
        return ""
    before = joined[0].runs[0].source_start
    return (
        ""
        if before is None or before > _MOST_BEFORE
        else "\n" * before + joined[0].text
    )


def _pieces(
    nodes: Sequence[NodeWithScore], document_key: str | None
) -> tuple[list[Piece], list[NodeWithScore]]:
    """The pieces and their nodes, without duplicates: the one with the highest score is kept."""
    best: dict[tuple[str, str], NodeWithScore] = {}
    for scored in nodes:
        name, text = scored.node.node_id, text_of(scored.node)
        known = best.get((name, text))
        if text and (known is None or (scored.score or 0.0) > (known.score or 0.0)):
            best[name, text] = scored
    pieces = [
        _piece(scored.node, text, document_key) for (_, text), scored in best.items()
    ]
    return pieces, list(best.values())


def _piece(node: BaseNode, text: str, document_key: str | None) -> Piece:
    whole = related(node, NodeRelationship.SOURCE) is None
    before, after = (
        related(node, NodeRelationship.PREVIOUS),
        related(node, NodeRelationship.NEXT),
    )
    start = 0 if whole else _start(node, text)
    return Piece(
        text=text,
        key=node.node_id,
        source=source_id(node),
        start=start,
        group=group_of(node, document_key),
        position=page_number(node.metadata, _PAGES[::-1]),
        previous=before.node_id if before else None,
        next=after.node_id if after else None,
        page=page_label(node.metadata, _PAGES) is not None,
        # Splitters link the chunks of one document, so a first chunk without links is
        # the only one.
        last=whole or (after is None and (before is not None or start == 0)),
    )


def _start(node: BaseNode, text: str) -> int | None:
    start, end = (
        getattr(node, "start_char_idx", None),
        getattr(node, "end_char_idx", None),
    )
    if (
        not isinstance(start, int)
        or not isinstance(end, int)
        or start < 0
        or end - start != len(text)
    ):
        return None  # unknown, or the text has been changed
    parent = related(node, NodeRelationship.PARENT)
    if (
        parent is not None
        and parent.node_id != source_id(node)
        and ID_KEY not in node.metadata
    ):
        # For a chunk of a chunk, the offset refers to the larger chunk, although SOURCE
        # is the document.
        return None
    return start


class ScannedNode(NodeWithScore):
    """A node with its scores for one question.

    The node itself does not depend on the question: retrievers that fuse results match
    it by ``hash`` or id.

    Attributes
    ----------
    node, score
        The node, and the score of its best sentence, from 0 to 1: the sigmoid of
        ``logit``.
    logit : float
        The scanner's output for its best sentence; may be negative.
    document_score : float
        The score of the best sentence of its whole document, whether or not that
        sentence was selected.
    retrieval_score : float or None
        The score that it was retrieved with, if there was one and
        ``keep_retrieval_score`` is set.
    answerable : float or None
        The probability that its document answers the question; None if the scorer does
        not report it.
    """

    logit: float
    document_score: float
    retrieval_score: float | None = None
    answerable: float | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "ScannedNode"

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the node's metadata with the scores.

        To change the node, write to ``node.metadata``.
        """
        scores = {
            key: getattr(self, key.removeprefix("spscanner_")) for key in SCORE_KEYS
        }
        return {
            **self.node.metadata,
            **{key: value for key, value in scores.items() if value is not None},
        }


class NodeAnswer(Answer[NodeWithScore, NodeWithScore]):
    """Results as new nodes; sentences have unique ids."""

    page_keys: ClassVar = _PAGES

    def __init__(self, keep_retrieval_score: bool) -> None:
        super().__init__(keep_retrieval_score)
        self._numbers: dict[str, int] = {}  # id of a sentence -> its index in found
        self._hashes: dict[
            int, str
        ] = {}  # hash of each node by its id(): hashing a long document is slow

    @override
    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        """Add a sentence; of two with the same id and text, keep the one with the higher score."""
        node = text.items[hit.place.piece].node
        name = self._sentence_id(hit, node)
        while (
            name in self._numbers
            and self.results[self._numbers[name]].node.get_content() != hit.text
        ):
            name += "#2"  # a different text has this id
        number = self._numbers.setdefault(name, len(self.results))
        if number == len(self.results):
            self.results.append(self._sentence(name, hit, text))
        elif self.results[number].get_score() < hit.score:
            self.results[number] = self._sentence(name, hit, text)

    @override
    def add_piece(
        self,
        best: Hit,
        text: ReadText[NodeWithScore],
        piece: int,
        content: str,
        saved: Mapping[str, float],
    ) -> None:
        node = text.items[piece].node
        if saved:
            node = _pruned(node, content, saved)
        self.results.append(ScannedNode(node=node, **self.scores(best, text, piece)))

    @override
    def content(self, of: NodeWithScore) -> str:
        return text_of(of.node)

    @override
    def text_for_model(self, result: NodeWithScore) -> str:
        return result.node.get_content(metadata_mode=MetadataMode.LLM)

    @override
    def metadata_of(self, item: NodeWithScore) -> Mapping[str, Any]:
        return item.node.metadata

    @override
    def retrieval_score_of(self, item: NodeWithScore) -> float | None:
        return item.score

    def _sentence(
        self, name: str, hit: Hit, text: ReadText[NodeWithScore]
    ) -> ScannedNode:
        node = text.items[hit.place.piece].node
        metadata = (
            result_metadata(node.metadata) | {ID_KEY: name} | self.place_metadata(hit, text)
        )
        source = related(node, NodeRelationship.SOURCE)
        if source is None:
            source = self._info(node)
        else:
            source = source.model_copy(
                update={"metadata": result_metadata(source.metadata)}
            )
        sentence = TextNode(
            id_=name,
            text=hit.text,
            start_char_idx=hit.place.source_start,
            end_char_idx=hit.place.source_end,
            relationships={
                NodeRelationship.SOURCE: source,
                NodeRelationship.PARENT: self._info(node),
            },
            **_with_metadata(node, metadata),
            **{key: getattr(node, key) for key in _TEMPLATES if hasattr(node, key)},
        )
        return ScannedNode(node=sentence, **self.scores(hit, text, hit.place.piece))

    def _info(self, node: BaseNode) -> RelatedNodeInfo:
        return RelatedNodeInfo(
            node_id=node.node_id,
            node_type=node.get_type(),
            metadata=result_metadata(node.metadata),
            hash=self._hash(node),
        )

    def _hash(self, node: BaseNode) -> str:
        if id(node) not in self._hashes:
            try:
                self._hashes[id(node)] = node.hash
            except UnicodeEncodeError:  # LlamaIndex cannot hash a lone surrogate
                self._hashes[id(node)] = _digest(repr(node.metadata) + text_of(node))
        return self._hashes[id(node)]

    def _sentence_id(self, hit: Hit, node: BaseNode) -> str:
        """An id that is the same in every run: document and span, else node and span, else node and text."""
        place = hit.place
        if place.source_start is not None:
            name, source = source_id(node), related(node, NodeRelationship.SOURCE)
            if is_random_id(name):  # it would be another one in the next run
                known = self._hash(node) if source is None else source.hash
                name = known[:24] if known else name
            return f"{name}:{place.source_start}-{place.source_end}"
        name = self._hash(node)[:24] if is_random_id(node.node_id) else node.node_id
        if place.piece_start is not None:
            return f"{name}:{place.piece_start}-{place.piece_end}"
        return f"{name}:{_digest(hit.text)[:16]}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _pruned(node: BaseNode, text: str, saved: Mapping[str, float]) -> BaseNode:
    """A copy of a node with its pruned text, and with the share that pruning saved in the metadata."""
    changed = {
        **_with_metadata(node, {**result_metadata(node.metadata), **saved}),
        "relationships": dict(node.relationships),
        "embedding": (
            None
        ),  # that of the node is for its whole text, and so are its offsets
        **{
            name: None
            for name in ("start_char_idx", "end_char_idx")
            if hasattr(node, name)
        },
    }
    copy = node.model_copy(update=changed)
    copy.set_content(text)
    return copy


def _with_metadata(node: BaseNode, metadata: dict[str, Any]) -> dict[str, Any]:
    """Fields that give a node these metadata, and hide the keys of this package from models."""
    fields: dict[str, Any] = {"metadata": metadata}
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        excluded = getattr(node, name)
        own = (
            key
            for key in metadata
            if key.startswith("spscanner_") and key not in excluded
        )
        fields[name] = [*excluded, *own]
    return fields
