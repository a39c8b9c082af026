"""Which documents are scanned, by what a first stage found."""

from collections.abc import Hashable, Sequence

from llama_index.core.schema import NodeWithScore
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.nodes import Reading, read_nodes, source_id, text_of
from llama_index.postprocessor.spscanner.sources import source_texts
from llama_index.retrievers.spscanner.corpus import Held


def candidate_readings(
    found: Sequence[NodeWithScore],
    held: Held,
    limit: int | None,
    docstore: BaseDocumentStore | None,
    document_key: str | None,
) -> list[Reading]:
    """One reading for each document of the first stage's nodes, in the order in which it names them.

    Parameters
    ----------
    found
        What the first stage returned.
    held
        The documents at hand: of these the whole text is read, of others the nodes that were found.
    limit
        How many documents at most.
    docstore
        Where other documents are looked up.
    document_key
        Metadata key that names documents which are read as one.
    """
    candidates: dict[Hashable, list[NodeWithScore]] = {}
    for scored in found:
        name = _document(scored, held, document_key)
        if name is not None and (name in candidates or limit is None or len(candidates) < limit):
            candidates.setdefault(name, []).append(scored)
    strangers = [
        scored for name, nodes in candidates.items() if not isinstance(name, int) for scored in nodes
    ]
    sources = source_texts((source_id(scored.node) for scored in strangers), None, docstore)
    return [
        _held(held, name, nodes)
        if isinstance(name, int)
        else read_nodes(nodes, sources, "document", document_key)
        for name, nodes in candidates.items()
    ]


def _document(scored: NodeWithScore, held: Held, document_key: str | None) -> Hashable | None:
    """Number of the held text that a node belongs to, else a name for its document; None without text."""
    node = scored.node
    number = held.number.get(source_id(node))
    if number is not None:
        return number
    if not text_of(node):
        return None
    group = None if document_key is None else node.metadata.get(document_key)
    return ("source", source_id(node)) if group is None else ("group", repr(group))


def _held(held: Held, number: int, nodes: Sequence[NodeWithScore]) -> Reading:
    best = max((scored.score for scored in nodes if scored.score is not None), default=None)
    return Reading([held.reading.texts[number]], held.reading.nodes, [best] * len(held.reading.nodes))
