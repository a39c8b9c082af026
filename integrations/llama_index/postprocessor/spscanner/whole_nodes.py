"""Search joined nodes, and return the nodes in which the best sentences stand, whole or cut down to them."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index.postprocessor.spscanner.nodes import JoinedNodes, text_of
from llama_index.postprocessor.spscanner.scored import Excerpt, ScannedNode
from llama_index.postprocessor.spscanner.sentences import best_sentences, with_own_keys
from spscanner_rag.retrieval import (
    CountTokens,
    ReturnNodes,
    SentenceSearch,
    copied_metadata,
    pruned_text,
    reduction_metadata,
)
from spscanner_rag.scorers import Cancelled, never


def best_nodes(
    search: SentenceSearch,
    query: str,
    joined: Sequence[JoinedNodes],
    return_nodes: ReturnNodes,
    keep_retrieval_score: bool,
    keep_compression: bool,
    cancelled: Cancelled = never,
) -> list[NodeWithScore]:
    """The best sentences of all texts together, or the nodes that they stand in."""
    found = _found(search, query, joined, return_nodes, keep_retrieval_score, cancelled)
    if keep_compression and found:
        texts = (text for nodes in joined for text in nodes.texts)
        kept, read = search.compression(texts, (text_of(scored.node) for scored in found))
        for scored in found:
            if isinstance(scored, ScannedNode):
                scored.tokens_kept, scored.tokens_read = kept, read
    return found


def _found(
    search: SentenceSearch,
    query: str,
    joined: Sequence[JoinedNodes],
    return_nodes: ReturnNodes,
    keep_retrieval_score: bool,
    cancelled: Cancelled,
) -> list[NodeWithScore]:
    if return_nodes == "sentence":
        return best_sentences(search, query, joined, keep_retrieval_score, cancelled)
    texts = [(text, nodes) for nodes in joined for text in nodes.texts]
    pruned = return_nodes == "pruned"
    kept = search.pieces(query, [text for text, _ in texts], cancelled, pruned=pruned)
    count = search.token_counter() if kept and pruned else None
    found: list[NodeWithScore] = []
    for piece in kept:
        text, nodes = texts[piece.joined]
        node, best = nodes.nodes[piece.piece], piece.best
        kind: type[ScannedNode] = ScannedNode
        if pruned:
            kind, node = Excerpt, _pruned(node, pruned_text(text_of(node), text, piece), count)
        found.append(
            kind(
                node=node,
                score=best.score,
                logit=best.logit,
                document_score=best.document_score,
                retrieval_score=nodes.scores[piece.piece] if keep_retrieval_score else None,
            )
        )
    return found


def _pruned(node: BaseNode, text: str, count: CountTokens | None) -> BaseNode:
    """A copy of a node with less text, and with the share that was saved in its metadata."""
    whole = text_of(node)
    metadata = copied_metadata(node.metadata) | reduction_metadata(whole, text, count)
    changed = {
        "metadata": metadata,
        "excluded_embed_metadata_keys": with_own_keys(node.excluded_embed_metadata_keys, metadata),
        "excluded_llm_metadata_keys": with_own_keys(node.excluded_llm_metadata_keys, metadata),
        "relationships": dict(node.relationships),
        "embedding": None,  # the given one is that of the whole text, and so are the offsets
        **{name: None for name in ("start_char_idx", "end_char_idx") if hasattr(node, name)},
    }
    copy = node.model_copy(update=changed)
    copy.set_content(text)
    return copy
