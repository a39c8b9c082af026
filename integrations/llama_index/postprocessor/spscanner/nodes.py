"""Nodes to pieces of text: what a node says of where it stands in its document."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
)

from spscanner_rag.retrieval.pieces import JoinedText, Piece, join_pieces

LOGIT_KEY = "spscanner_logit"
RETRIEVAL_SCORE_KEY = "spscanner_retrieval_score"
OWN_KEYS = (LOGIT_KEY, RETRIEVAL_SCORE_KEY)

GroupBy = Literal["document", "node"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Texts to scan, and the nodes that the numbers of their pieces stand for.

    Attributes
    ----------
    texts
        One for each document, group of documents or node.
    nodes
        By the number of their piece.
    scores
        What the nodes were retrieved with, in the same order.
    """

    texts: Sequence[JoinedText]
    nodes: Sequence[BaseNode]
    scores: Sequence[float | None]


def query_text(query: QueryBundle | str | None) -> str:
    """The question; ``ValueError`` if there is none."""
    text = query.query_str if isinstance(query, QueryBundle) else query
    if text is None:
        raise ValueError("query_bundle is None; expected a question: pass query_str=... or query_bundle=...")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"query is {text!r:.60}; expected a question or key words")
    return text


def with_scores(nodes: Iterable[NodeWithScore | BaseNode]) -> list[NodeWithScore]:
    """The nodes, with None as the score of those that come bare."""
    found = []
    for number, node in enumerate(nodes):
        if isinstance(node, BaseNode):
            found.append(NodeWithScore(node=node))
        elif isinstance(node, NodeWithScore):
            found.append(node)
        else:
            raise TypeError(f"nodes[{number}] is {type(node).__name__}; expected a NodeWithScore or a node")
    return found


def text_of(node: BaseNode) -> str:
    """The text of a node without its metadata; empty if it is an image or has none."""
    if isinstance(node, ImageNode | ImageDocument):
        return ""
    return node.get_content(metadata_mode=MetadataMode.NONE) or ""


def related(node: BaseNode, relationship: NodeRelationship) -> RelatedNodeInfo | None:
    """The one node that stands in a relationship to another, if there is one."""
    info = node.relationships.get(relationship)
    return info if isinstance(info, RelatedNodeInfo) else None


def source_id(node: BaseNode) -> str:
    """Id of the document that a node was cut from, or of the node if it was not."""
    source = related(node, NodeRelationship.SOURCE)
    return node.node_id if source is None else source.node_id


def read_nodes(
    nodes: Sequence[NodeWithScore],
    sources: Mapping[Hashable, str],
    group_by: GroupBy = "document",
    document_key: str | None = None,
) -> Reading:
    """Join nodes to texts.

    Parameters
    ----------
    nodes
        Those without text are left out, and so is the second of two that are the same.
    sources
        Whole texts of documents, by id.
    group_by
        ``"document"`` joins the nodes of a document, ``"node"`` leaves each alone.
    document_key
        Metadata key whose value names the documents that are joined.
    """
    pieces, numbers = _pieces(nodes, document_key)
    if group_by == "document":
        texts = join_pieces(pieces, sources)
    else:
        texts = join_pieces([_alone(piece, number, sources) for number, piece in enumerate(pieces)])
    return Reading(texts, [nodes[number].node for number in numbers], _best_scores(nodes, numbers))


def document_texts(nodes: Sequence[BaseNode]) -> str | None:
    """The text of one document out of all of its nodes; None if they leave out more than white space."""
    pieces, _ = _pieces([NodeWithScore(node=node) for node in nodes], None)
    joined = join_pieces(pieces)
    if len(joined) != 1 or len(joined[0].runs) != 1:
        return None
    before = joined[0].runs[0].source_start
    return None if before is None or before > _MOST_BEFORE else "\n" * before + joined[0].text


_MOST_BEFORE = 64  # as many characters may be white space that a splitter dropped before the first chunk


def _pieces(nodes: Sequence[NodeWithScore], document_key: str | None) -> tuple[list[Piece], list[int]]:
    """A piece for each node with text that was not seen yet, and the number of that node."""
    pieces: list[Piece] = []
    numbers: list[int] = []
    seen: dict[str, list[str]] = {}
    for number, scored in enumerate(nodes):
        node = scored.node
        text = text_of(node)
        others = seen.setdefault(node.node_id, [])
        if not text or text in others:
            continue
        others.append(text)
        numbers.append(number)
        pieces.append(_piece(node, text, len(others), document_key))
    return pieces, numbers


def _piece(node: BaseNode, text: str, copy: int, document_key: str | None) -> Piece:
    source: Hashable = source_id(node)
    whole = related(node, NodeRelationship.SOURCE) is None
    if whole and copy > 1:
        source = f"{source}#{copy}"  # another text under the same id: a document of its own
    before, after = related(node, NodeRelationship.PREVIOUS), related(node, NodeRelationship.NEXT)
    return Piece(
        text=text,
        key=node.node_id if copy == 1 else f"{node.node_id}#{copy}",
        source=source,
        start=0 if whole else _start(node, text),
        group=None if document_key is None else _group(node.metadata.get(document_key)),
        position=_page(node.metadata),
        previous=before.node_id if before else None,
        next=after.node_id if after else None,
    )


def _start(node: BaseNode, text: str) -> int | None:
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0 or end - start != len(text):
        return None  # not known, or the text was changed since
    parent = related(node, NodeRelationship.PARENT)
    if parent is not None and parent.node_id != source_id(node) and LOGIT_KEY not in node.metadata:
        return (
            None  # a chunk of a chunk: LlamaIndex counts in the larger chunk, but calls the document SOURCE
        )
    return start


def _group(value: object) -> Hashable | None:
    return value if isinstance(value, str | int | float | None) else repr(value)


def _page(metadata: Mapping[str, object]) -> float | None:
    """The page number, by the keys that LlamaIndex's readers use."""
    for key in ("page", "page_label"):
        value = metadata.get(key)
        if isinstance(value, int | float) and value == value:  # not NaN
            return float(value)
        if isinstance(value, str) and value.strip().isdecimal():
            return float(value)
    return None


def _alone(piece: Piece, number: int, sources: Mapping[Hashable, str]) -> Piece:
    """The piece as a text of its own."""
    start = piece.start
    source = sources.get(piece.source)
    if source is not None and (start is None or not source.startswith(piece.text, start)):
        first = source.find(piece.text)
        once = first >= 0 and source.find(piece.text, first + 1) < 0
        start = first if once else None
    return Piece(text=piece.text, key=piece.key, source=piece.source, start=start, group=number)


def _best_scores(nodes: Sequence[NodeWithScore], numbers: Sequence[int]) -> list[float | None]:
    """Retrieval scores; of nodes that came twice the higher one."""
    best: dict[tuple[str, str], float] = {}
    for scored in nodes:
        if scored.score is not None:
            key = (scored.node.node_id, text_of(scored.node))
            best[key] = max(best.get(key, scored.score), scored.score)
    return [best.get((nodes[number].node.node_id, text_of(nodes[number].node))) for number in numbers]
