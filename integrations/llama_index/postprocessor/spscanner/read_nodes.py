"""LlamaIndex nodes as texts to read."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.node_groups import AUTO
from llama_index.postprocessor.spscanner.node_pieces import (
    piece_of,
    without_duplicates,
)
from llama_index.postprocessor.spscanner.whole_documents import (
    WholeDocuments,
    whole_text,
)
from spscanner_rag.retrieval import Piece, ReadText, join_pieces

GroupBy = Literal["document", "node"]


def read_nodes(
    nodes: Sequence[NodeWithScore],
    documents: Mapping[str, BaseNode],
    docstore: BaseDocumentStore | None,
    group_by: GroupBy = "document",
    document_key: str | None = AUTO,
) -> list[ReadText[NodeWithScore]]:
    """Join the nodes of each document, or of each group of documents, to a text.

    Parameters
    ----------
    nodes : sequence of NodeWithScore
        The nodes; duplicates are left out.
    documents : mapping
        Whole documents by id, which are read instead of their nodes.
    docstore : BaseDocumentStore, optional
        Has further whole documents, or all of their nodes.
    group_by : {"document", "node"}
        "node": each node is a text.
    document_key : str or None
        As for `group_of`.
    """
    if documents:
        wholes = WholeDocuments(documents.values())
        nodes = [wholes.tied(scored) for scored in nodes]
    items = without_duplicates(nodes)
    pieces = [piece_of(scored.node, document_key) for scored in items]
    sources: dict[Hashable, str] = {}
    if group_by == "node":
        pieces = _each_alone(pieces)
    else:
        for piece in pieces:
            name = str(piece.source)
            if name not in sources:
                sources[name] = whole_text(name, documents, docstore)
        sources = {name: text for name, text in sources.items() if text}
    return [ReadText(joined, items) for joined in join_pieces(pieces, sources)]


def _each_alone(pieces: Sequence[Piece]) -> list[Piece]:
    return [replace(piece, group=number) for number, piece in enumerate(pieces)]
