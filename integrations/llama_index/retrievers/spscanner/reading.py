"""Which documents are read for a question: filtered by metadata, chosen by a first stage, within bounds."""

from dataclasses import replace

from llama_index.postprocessor.spscanner.nodes import JoinedNodes
from llama_index.retrievers.spscanner.filters import NodeFilter
from llama_index.retrievers.spscanner.held import HeldNodes, HeldTexts
from spscanner_rag.retrieval import (
    JoinedText,
    ReadBounds,
    check_found,
    choose_texts,
    estimated_tokens,
    restrict,
)


def read_all(held: HeldTexts, passes: NodeFilter | None) -> list[JoinedNodes]:
    """All texts with a node that passes the filter; other nodes in them give no results."""
    return [replace(held.joined, texts=list(_filtered(held.joined, passes).values()))]


def read_best(
    held: HeldTexts, query: str, bounds: ReadBounds, passes: NodeFilter | None
) -> list[JoinedNodes]:
    """The texts to read by the retriever's own first stage."""
    admitted = _filtered(held.joined, passes)
    scores: list[float | None] = [None] * len(held.joined.nodes)
    texts = []
    for chosen in choose_texts(held.corpus, query, bounds, list(admitted)):
        texts.append(admitted[chosen.number])
        for placed in admitted[chosen.number].placed:
            scores[placed.number] = chosen.score
    return [JoinedNodes(texts, held.joined.nodes, scores)]


def read_found(
    nodes: HeldNodes,
    held: HeldTexts,
    found: object,
    bounds: ReadBounds,
    passes: NodeFilter | None,
) -> list[JoinedNodes]:
    """The texts of the nodes that another first stage found, in its order, as far as the bounds go.

    Raises ``TypeError`` if it found anything but a sequence.
    """
    joined = nodes.found(held, check_found(found, "nodes with scores"))
    every = [replace(own, texts=list(_filtered(own, passes).values())) for own in joined]
    filled = [own for own in every if own.texts]
    tokens = (sum(estimated_tokens(joined.text) for joined in own.texts) for own in filled)
    return [filled[number] for number in bounds.kept(tokens)]


def _filtered(joined: JoinedNodes, passes: NodeFilter | None) -> dict[int, JoinedText]:
    """Texts by index, restricted to the nodes that pass."""
    if passes is None:
        return dict(enumerate(joined.texts))
    admitted = [passes(node) for node in joined.nodes]
    texts = ((number, restrict(text, admitted.__getitem__)) for number, text in enumerate(joined.texts))
    return {number: text for number, text in texts if text is not None}
