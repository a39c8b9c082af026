"""Convert LlamaIndex nodes to texts to scan, from their offsets and links and from whole documents."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore import BaseDocumentStore

from spscanner_rag.retrieval import ID_KEY, Piece, ReadText, join_pieces, page_number

AUTO = "auto"  # the `document_key` for which pages of one file are one document
_FILES = ("file_path", "file_name")
_PAGES = ("page", "page_label")  # the keys that LlamaIndex's readers use
_MOST_BEFORE = 64  # maximum white space, in characters, that a splitter may drop before the first chunk

_SHORTEST_WITHOUT_FILE = 32  # characters; a shorter text may be in a document by chance

GroupBy = Literal["document", "node"]


def with_scores(nodes: Iterable[NodeWithScore | BaseNode]) -> list[NodeWithScore]:
    """Wrap bare nodes in a `NodeWithScore` without a score."""
    found = []
    for number, node in enumerate(nodes):
        if isinstance(node, BaseNode):
            found.append(NodeWithScore(node=node))
        elif isinstance(node, NodeWithScore):
            found.append(node)
        else:
            raise TypeError(f"nodes[{number}] is {kind_of(node)}; expected a NodeWithScore or a node")
    return found


def kind_of(value: object) -> str:
    """What something is that is no node, for errors."""
    if hasattr(value, "page_content"):
        return "a LangChain Document, not LlamaIndex's Document(text=it.page_content, metadata=it.metadata)"
    return type(value).__name__


def text_of(node: BaseNode) -> str:
    """The text of a node without its metadata; empty for an image."""
    if isinstance(node, ImageNode | ImageDocument):
        return ""
    return node.get_content(metadata_mode=MetadataMode.NONE) or ""


def related(node: BaseNode, relationship: NodeRelationship) -> RelatedNodeInfo | None:
    """The single related node of a kind, if there is one."""
    info = node.relationships.get(relationship)
    return info if isinstance(info, RelatedNodeInfo) else None


def source_id(node: BaseNode) -> str:
    """Id of the document that a node was cut from, else of the node itself."""
    source = related(node, NodeRelationship.SOURCE)
    return node.node_id if source is None else source.node_id


def page_label(node: BaseNode) -> object:
    """What the node's metadata say about its page; None if nothing."""
    return next((node.metadata[key] for key in reversed(_PAGES) if node.metadata.get(key) is not None), None)


def group_of(node: BaseNode, document_key: str | None) -> Hashable | None:
    """Equal for nodes whose documents are read as one text; None if the node's document is read alone."""
    if document_key != AUTO:
        value = None if document_key is None else node.metadata.get(document_key)
        return value if isinstance(value, str | int | float | None) else repr(value)
    if page_label(node) is None:
        return None
    named = ((key, node.metadata.get(key)) for key in _FILES)
    return next(((key, str(name)) for key, name in named if name), None)


def read_nodes(
    nodes: Sequence[NodeWithScore],
    sources: Mapping[Hashable, str],
    group_by: GroupBy = "document",
    document_key: str | None = AUTO,
) -> list[ReadText[NodeWithScore]]:
    """Join the nodes of each document or `group_of`; ``sources`` holds whole texts of documents by id."""
    pieces, owners = _pieces(nodes, document_key)
    if group_by == "node":
        pieces, sources = [replace(piece, group=number) for number, piece in enumerate(pieces)], {}
    return [ReadText(joined, owners) for joined in join_pieces(pieces, sources)]


class WholeDocuments:
    """Finds the document of a node whose SOURCE names none: the only one of its file, or of all, with its text."""

    def __init__(self, documents: Iterable[BaseNode]) -> None:
        self._of_file: dict[Hashable, list[BaseNode]] = {}
        for document in documents:
            for file in {None, *_files_of(document)}:
                self._of_file.setdefault(file, []).append(document)

    def holding(self, node: BaseNode) -> BaseNode | None:
        """The document; None without one, or with several texts that may be it."""
        text, files = text_of(node), _files_of(node)
        if not files and len(text) < _SHORTEST_WITHOUT_FILE:
            return None
        among = next((self._of_file[file] for file in files if file in self._of_file), None)
        if among is None and not files:
            among = self._of_file.get(None)
        found = [document for document in among or () if text and text in text_of(document)]
        return found[0] if len({source_id(document) for document in found}) == 1 else None


def _files_of(node: BaseNode) -> list[tuple[str, str]]:
    return [(key, str(node.metadata[key])) for key in _FILES if node.metadata.get(key)]


def read_found(
    nodes: Sequence[NodeWithScore],
    documents: Iterable[BaseNode],
    docstore: BaseDocumentStore | None,
    group_by: GroupBy = "document",
    document_key: str | None = AUTO,
) -> list[ReadText[NodeWithScore]]:
    """`read_nodes` of retrieved nodes, within the documents that they were cut from, where these are at hand."""
    own = by_id(documents)
    wholes = WholeDocuments(own.values())
    within = []
    for scored in nodes:
        whole = None if source_id(scored.node) in own else wholes.holding(scored.node)
        within.append(scored if whole is None else _within(scored, whole))
    sources = source_texts((source_id(scored.node) for scored in within), own, docstore)
    return read_nodes(within, sources, group_by, document_key)


def _within(scored: NodeWithScore, whole: BaseNode) -> NodeWithScore:
    """A node as one of a document, by its relationships."""
    source = {NodeRelationship.SOURCE: whole.as_related_node_info()}
    node = scored.node.model_copy(update={"relationships": {**scored.node.relationships, **source}})
    return scored.model_copy(update={"node": node})


def by_id(nodes: Iterable[BaseNode], name: str = "documents") -> dict[str, BaseNode]:
    """The nodes by their ids; ``ValueError`` if two different ones have the same id."""
    own: dict[str, BaseNode] = {}
    for node in nodes:
        known = own.setdefault(node.node_id, node)
        if known is not node and (text_of(known), known.metadata) != (text_of(node), node.metadata):
            raise ValueError(
                f"{name}: got two different ones with the id {node.node_id!r}; expected an id of its own for each"
            )
    return own


def source_texts(
    ids: Iterable[str], documents: Mapping[str, BaseNode], docstore: BaseDocumentStore | None
) -> dict[Hashable, str]:
    """Whole texts of those documents that are available, by id."""
    found: dict[Hashable, str] = {}
    for name in dict.fromkeys(ids):
        text: str | None = text_of(documents[name]) if name in documents else ""
        if not text and docstore is not None:
            text = _stored(name, docstore)
        if text:
            found[name] = text
    return found


def _stored(name: str, docstore: BaseDocumentStore) -> str | None:
    """A document's text, from the document, else from its nodes if only white space is missing between them."""
    document = docstore.get_document(name, raise_error=False)
    if document is not None:
        return text_of(document)
    info = docstore.get_ref_doc_info(name)
    if info is None:
        return None
    nodes = docstore.get_nodes(list(info.node_ids), raise_error=False)
    pieces, _ = _pieces([NodeWithScore(node=node) for node in nodes], None)
    joined = join_pieces(pieces)
    if len(joined) != 1 or len(joined[0].runs) != 1:
        return None
    before = joined[0].runs[0].source_start
    return None if before is None or before > _MOST_BEFORE else "\n" * before + joined[0].text


def _pieces(
    nodes: Sequence[NodeWithScore], document_key: str | None
) -> tuple[list[Piece], list[NodeWithScore]]:
    """The pieces and their nodes, without duplicates, of which the one with the higher score counts."""
    best: dict[tuple[str, str], NodeWithScore] = {}
    for scored in nodes:
        name, text = scored.node.node_id, text_of(scored.node)
        known = best.get((name, text))
        if text and (known is None or (scored.score or 0.0) > (known.score or 0.0)):
            best[name, text] = scored
    pieces = [_piece(scored.node, text, document_key) for (_, text), scored in best.items()]
    return pieces, list(best.values())


def _piece(node: BaseNode, text: str, document_key: str | None) -> Piece:
    whole = related(node, NodeRelationship.SOURCE) is None
    before, after = related(node, NodeRelationship.PREVIOUS), related(node, NodeRelationship.NEXT)
    start = 0 if whole else _start(node, text)
    pages = (page_number(node.metadata.get(key)) for key in _PAGES)
    return Piece(
        text=text,
        key=node.node_id,
        source=source_id(node),
        start=start,
        group=group_of(node, document_key),
        position=next((page for page in pages if page is not None), None),
        previous=before.node_id if before else None,
        next=after.node_id if after else None,
        page=page_label(node) is not None,
        # Splitters link the chunks of one document, so that a first chunk without links is the only one.
        last=whole or (after is None and (before is not None or start == 0)),
    )


def _start(node: BaseNode, text: str) -> int | None:
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0 or end - start != len(text):
        return None  # unknown, or the text has been changed
    parent = related(node, NodeRelationship.PARENT)
    if parent is not None and parent.node_id != source_id(node) and ID_KEY not in node.metadata:
        # For a chunk of a chunk, the offset refers to the larger chunk, although SOURCE is the document.
        return None
    return start
