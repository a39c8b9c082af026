"""LlamaIndex nodes as pieces of their documents."""

from collections.abc import Iterable

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore

from llama_index.postprocessor.spscanner.node_groups import PAGE_KEYS, group_of
from llama_index.postprocessor.spscanner.node_relations import (
    related,
    source_id,
    text_of,
)
from spscanner_rag.retrieval import ID_KEY, Piece, page_label, page_number


def without_duplicates(nodes: Iterable[NodeWithScore]) -> list[NodeWithScore]:
    """The nodes with text, of which equal ones with a lower score are left out."""
    best: dict[tuple[str, str], NodeWithScore] = {}
    for scored in nodes:
        text = text_of(scored.node)
        if not text:
            continue
        name = (scored.node.node_id, text)
        earlier = best.setdefault(name, scored)
        if (scored.score or 0.0) > (earlier.score or 0.0):
            best[name] = scored
    return list(best.values())


def piece_of(node: BaseNode, document_key: str | None) -> Piece:
    """A node as a piece of its document."""
    text = text_of(node)
    is_whole = related(node, NodeRelationship.SOURCE) is None
    before = related(node, NodeRelationship.PREVIOUS)
    after = related(node, NodeRelationship.NEXT)
    start = 0 if is_whole else _start(node, text)
    # Splitters link the chunks of one document, so a first chunk without links is the
    # only one.
    ends_document = after is None and (before is not None or start == 0)
    return Piece(
        text=text,
        key=node.node_id,
        source=source_id(node),
        start=start,
        group=group_of(node, document_key),
        position=page_number(node.metadata, PAGE_KEYS[::-1]),
        previous=before.node_id if before else None,
        next=after.node_id if after else None,
        page=page_label(node.metadata, PAGE_KEYS) is not None,
        last=is_whole or ends_document,
    )


def _start(node: BaseNode, text: str) -> int | None:
    """The offset of a chunk in its document, None if it is unknown."""
    start = getattr(node, "start_char_idx", None)
    end = getattr(node, "end_char_idx", None)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0:
        return None
    if end - start != len(text):
        return None  # the text has been changed
    parent = related(node, NodeRelationship.PARENT)
    if parent is None or parent.node_id == source_id(node) or ID_KEY in node.metadata:
        return start
    # For a chunk of a chunk, the offset refers to the larger chunk, although SOURCE is
    # the document.
    return None
