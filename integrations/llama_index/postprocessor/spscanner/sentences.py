"""Search joined nodes, and make a new node of each selected sentence."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index.postprocessor.spscanner.nodes import (
    JoinedNodes,
    page_label,
    related,
    source_id,
    text_of,
)
from llama_index.postprocessor.spscanner.scored import Excerpt
from spscanner_rag.retrieval import (
    ID_KEY,
    Hit,
    JoinedText,
    SentenceSearch,
    continued_metadata,
    copied_metadata,
    is_random_id,
)
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
    writer = _Writer(keep_retrieval_score)
    for hit in search(query, [text for text, _ in texts], cancelled):
        writer.add(hit, *texts[hit.joined])
    return list(writer.found)


def with_own_keys(excluded: Sequence[str], metadata: dict[str, Any]) -> list[str]:
    """A node's excluded keys and those of ``metadata`` that are this package's."""
    own = (key for key in metadata if key.startswith("spscanner_") and key not in excluded)
    return [*excluded, *own]


class _Writer:
    """Makes the nodes of sentences, each with a unique id."""

    def __init__(self, keep_retrieval_score: bool) -> None:
        self.found: list[Excerpt] = []
        self._keep_retrieval_score = keep_retrieval_score
        self._numbers: dict[str, int] = {}  # id -> index in found
        self._hashes: dict[int, str] = {}  # hash of each node by its id(): hashing a long document is slow

    def add(self, hit: Hit, text: JoinedText, nodes: JoinedNodes) -> None:
        """Add a sentence; of two equal ones of one document, the one with the higher score counts."""
        source = source_id(nodes.nodes[hit.place.piece])
        name = unique = self._sentence_id(hit, nodes.nodes[hit.place.piece])
        copy = 1
        while unique in self._numbers:
            number = self._numbers[unique]
            same = self.found[number]
            if same.node.get_content() == hit.text and source_id(same.node) == source:
                if same.get_score() < hit.score:
                    self.found[number] = self._written(unique, hit, text, nodes)
                return
            copy += 1
            unique = f"{name}#{copy}"
        self._numbers[unique] = len(self.found)
        self.found.append(self._written(unique, hit, text, nodes))

    def _written(self, name: str, hit: Hit, text: JoinedText, nodes: JoinedNodes) -> Excerpt:
        node = nodes.nodes[hit.place.piece]
        metadata = copied_metadata(node.metadata) | {ID_KEY: name}
        metadata |= continued_metadata(hit, text, lambda piece: page_label(nodes.nodes[piece]))
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
            excluded_embed_metadata_keys=with_own_keys(node.excluded_embed_metadata_keys, metadata),
            excluded_llm_metadata_keys=with_own_keys(node.excluded_llm_metadata_keys, metadata),
            relationships={NodeRelationship.SOURCE: source, NodeRelationship.PARENT: self._info(node)},
            **{key: getattr(node, key) for key in _TEMPLATES if hasattr(node, key)},
        )
        return Excerpt(
            node=sentence,
            score=hit.score,
            logit=hit.logit,
            document_score=hit.document_score,
            retrieval_score=nodes.scores[hit.place.piece] if self._keep_retrieval_score else None,
        )

    def _info(self, node: BaseNode) -> RelatedNodeInfo:
        return RelatedNodeInfo(
            node_id=node.node_id,
            node_type=node.get_type(),
            metadata=copied_metadata(node.metadata),
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
        """The same in every run: document and span, else node and span, else node and text."""
        place = hit.place
        if place.source_start is not None:
            name = source_id(node)
            copy = str(place.source).removeprefix(name)  # "#2" of a second text with the same id
            return f"{self._source_name(name, node)}{copy}:{place.source_start}-{place.source_end}"
        name = self._hash(node)[:24] if is_random_id(node.node_id) else node.node_id
        if place.piece_start is not None:
            return f"{name}:{place.piece_start}-{place.piece_end}"
        return f"{name}:{_digest(hit.text)[:16]}"

    def _source_name(self, name: str, node: BaseNode) -> str:
        """The id of a node's document, or its hash, if the id was made up at random in this run."""
        if not is_random_id(name):
            return name
        source = related(node, NodeRelationship.SOURCE)
        known = self._hash(node) if source is None else source.hash
        return known[:24] if known else name


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
