"""What is returned: a node with all of its scores. What depends on the question is no part of the node."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from typing_extensions import override

from llama_index.postprocessor.spscanner.nodes import page_label, related, source_id, text_of
from spscanner_rag.retrieval import (
    ID_KEY,
    SCORE_KEYS,
    Answer,
    Hit,
    ReadText,
    is_random_id,
    place_metadata,
    result_metadata,
)

_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")


class ScannedNode(NodeWithScore):
    """A node with the scores that it got for one question.

    The node itself does not depend on the question: retrievers that fuse results know it by its ``hash`` or id.

    Attributes
    ----------
    node, score
        The node, and the score of its best sentence, from 0 to 1: the sigmoid of ``logit``.
    logit : float
        What the scanner gave to its best sentence; may be negative.
    document_score : float
        The score of the best sentence of its whole document, whether that was selected or not.
    retrieval_score : float or None
        The score that it was retrieved with, on request and if there was one.
    answerable : float or None
        The probability that its document answers; None where the scorer does not say it.
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
        """A copy of the node's metadata with the scores; write to ``node.metadata`` to change the node's."""
        scores = {key: getattr(self, key.removeprefix("spscanner_")) for key in SCORE_KEYS}
        return {**self.node.metadata, **{key: value for key, value in scores.items() if value is not None}}


class NodeAnswer(Answer[NodeWithScore, NodeWithScore]):
    """Results as new nodes; sentences have unique ids."""

    def __init__(self, keep_retrieval_score: bool) -> None:
        super().__init__(keep_retrieval_score)
        self._numbers: dict[str, int] = {}  # id of a sentence -> its index in found
        self._hashes: dict[int, str] = {}  # hash of each node by its id(): hashing a long document is slow

    @override
    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        """Add a sentence; of two with one id, the one with the higher score counts."""
        node = text.items[hit.place.piece].node
        name = self._sentence_id(hit, node)
        while name in self._numbers and self.found[self._numbers[name]].node.get_content() != hit.text:
            name += "#2"  # another text under the same id
        number = self._numbers.setdefault(name, len(self.found))
        if number == len(self.found):
            self.found.append(self._sentence(name, hit, text))
        elif self.found[number].get_score() < hit.score:
            self.found[number] = self._sentence(name, hit, text)

    @override
    def add_piece(
        self,
        best: Hit,
        text: ReadText[NodeWithScore],
        piece: int,
        pruned: tuple[str, dict[str, float]] | None,
    ) -> None:
        node = text.items[piece].node
        if pruned is not None:
            node = _pruned(node, *pruned)
        self.found.append(ScannedNode(node=node, **self.scores(best, text, piece)))

    @override
    def content(self, of: NodeWithScore) -> str:
        return text_of(of.node)

    @override
    def sent(self, result: NodeWithScore) -> str:
        return result.node.get_content(metadata_mode=MetadataMode.LLM)

    @override
    def own_score(self, item: NodeWithScore) -> float | None:
        return item.score

    def _sentence(self, name: str, hit: Hit, text: ReadText[NodeWithScore]) -> ScannedNode:
        node = text.items[hit.place.piece].node
        metadata = result_metadata(node.metadata) | {ID_KEY: name}
        metadata |= place_metadata(
            hit, text, lambda item: item.node.metadata, lambda item: page_label(item.node)
        )
        source = related(node, NodeRelationship.SOURCE)
        if source is None:
            source = self._info(node)
        else:
            source = source.model_copy(update={"metadata": result_metadata(source.metadata)})
        sentence = TextNode(
            id_=name,
            text=hit.text,
            start_char_idx=hit.place.source_start,
            end_char_idx=hit.place.source_end,
            metadata=metadata,
            excluded_embed_metadata_keys=_with_own_keys(node.excluded_embed_metadata_keys, metadata),
            excluded_llm_metadata_keys=_with_own_keys(node.excluded_llm_metadata_keys, metadata),
            relationships={NodeRelationship.SOURCE: source, NodeRelationship.PARENT: self._info(node)},
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
        """The same in every run: document and span, else node and span, else node and text."""
        place = hit.place
        if place.source_start is not None:
            name = self._source_name(source_id(node), node)
            return f"{name}:{place.source_start}-{place.source_end}"
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


def _pruned(node: BaseNode, text: str, saved: dict[str, float]) -> BaseNode:
    """A copy of a node with less text, and with the share that was saved in its metadata."""
    metadata = result_metadata(node.metadata) | saved
    changed = {
        "metadata": metadata,
        "excluded_embed_metadata_keys": _with_own_keys(node.excluded_embed_metadata_keys, metadata),
        "excluded_llm_metadata_keys": _with_own_keys(node.excluded_llm_metadata_keys, metadata),
        "relationships": dict(node.relationships),
        "embedding": None,  # the given one is that of the whole text, and so are the offsets
        **{name: None for name in ("start_char_idx", "end_char_idx") if hasattr(node, name)},
    }
    copy = node.model_copy(update=changed)
    copy.set_content(text)
    return copy


def _with_own_keys(excluded: Sequence[str], metadata: dict[str, Any]) -> list[str]:
    """A node's excluded keys and those of ``metadata`` that are this package's."""
    own = (key for key in metadata if key.startswith("spscanner_") and key not in excluded)
    return [*excluded, *own]
