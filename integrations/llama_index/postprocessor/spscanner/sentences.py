"""Search joined nodes, and make a new node of each selected sentence."""

from collections.abc import Sequence
from hashlib import sha256

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index.postprocessor.spscanner.nodes import (
    LOGIT_KEY,
    OWN_KEYS,
    RETRIEVAL_SCORE_KEY,
    JoinedNodes,
    related,
)
from spscanner_rag.retrieval import Hit, SentenceSearch, copied_metadata
from spscanner_rag.scorers import Cancelled, never

_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")


def best_sentences(
    search: SentenceSearch,
    query: str,
    joined: Sequence[JoinedNodes],
    keep_retrieval_score: bool,
    cancelled: Cancelled = never,
) -> list[NodeWithScore]:
    """The best sentences of all texts together, as new nodes."""
    texts = [(text, nodes) for nodes in joined for text in nodes.texts]
    writer = _Writer()
    for hit in search(query, [text for text, _ in texts], cancelled):
        nodes, piece = texts[hit.joined][1], hit.place.piece
        writer.add(hit, nodes.nodes[piece], nodes.scores[piece] if keep_retrieval_score else None)
    return writer.found


class _Writer:
    """Makes the nodes of sentences, each with a unique id."""

    def __init__(self) -> None:
        self.found: list[NodeWithScore] = []
        self._numbers: dict[str, int] = {}  # id -> index in found
        self._hashes: dict[int, str] = {}  # hash of each node by its id(): hashing a long document is slow

    def add(self, hit: Hit, node: BaseNode, retrieval_score: float | None) -> None:
        """Add a sentence; of two equal ones, the one with the higher score counts."""
        name = unique = _sentence_id(hit, node)
        copy = 1
        while unique in self._numbers:
            number = self._numbers[unique]
            same = self.found[number]
            if same.node.get_content() == hit.text:
                if same.get_score() < hit.score:
                    self.found[number] = self._written(unique, hit, node, retrieval_score)
                return
            copy += 1
            unique = f"{name}#{copy}"
        self._numbers[unique] = len(self.found)
        self.found.append(self._written(unique, hit, node, retrieval_score))

    def _written(self, name: str, hit: Hit, node: BaseNode, retrieval_score: float | None) -> NodeWithScore:
        metadata = copied_metadata(node.metadata) | {LOGIT_KEY: hit.logit}
        if retrieval_score is not None:
            metadata[RETRIEVAL_SCORE_KEY] = retrieval_score
        source = related(node, NodeRelationship.SOURCE)
        if source is None:
            source = self._info(node)
        else:
            source = source.model_copy(update={"metadata": copied_metadata(source.metadata)})
        sentence = TextNode(
            id_=name,
            text=hit.text,
            start_char_idx=hit.place.source_start,
            end_char_idx=hit.place.source_end,
            metadata=metadata,
            excluded_embed_metadata_keys=_with_own_keys(node.excluded_embed_metadata_keys),
            excluded_llm_metadata_keys=_with_own_keys(node.excluded_llm_metadata_keys),
            relationships={NodeRelationship.SOURCE: source, NodeRelationship.PARENT: self._info(node)},
            **{key: getattr(node, key) for key in _TEMPLATES if hasattr(node, key)},
        )
        return NodeWithScore(node=sentence, score=hit.score)

    def _info(self, node: BaseNode) -> RelatedNodeInfo:
        if id(node) not in self._hashes:
            self._hashes[id(node)] = node.hash
        return RelatedNodeInfo(
            node_id=node.node_id,
            node_type=node.get_type(),
            metadata=copied_metadata(node.metadata),
            hash=self._hashes[id(node)],
        )


def _sentence_id(hit: Hit, node: BaseNode) -> str:
    place = hit.place
    if place.source_start is not None:
        return f"{place.source}:{place.source_start}-{place.source_end}"
    if place.piece_start is not None:
        return f"{node.node_id}:{place.piece_start}-{place.piece_end}"
    digest = sha256(hit.text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{node.node_id}:{digest[:16]}"


def _with_own_keys(excluded: Sequence[str]) -> list[str]:
    return [*excluded, *(key for key in OWN_KEYS if key not in excluded)]
