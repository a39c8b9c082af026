"""The results for a query, as new LlamaIndex nodes."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
)
from typing_extensions import override

from llama_index.postprocessor.spscanner.new_nodes import (
    pruned_node,
    sentence_node,
    without_word_places,
)
from llama_index.postprocessor.spscanner.node_groups import PAGE_KEYS
from llama_index.postprocessor.spscanner.node_relations import (
    related,
    source_id,
    text_of,
)
from llama_index.postprocessor.spscanner.scanned_node import ScannedNode
from spscanner_rag.retrieval import (
    ID_KEY,
    Answer,
    Hit,
    ReadText,
    is_random_id,
    result_metadata,
)


class NodeAnswer(Answer[NodeWithScore, NodeWithScore]):
    """Results as new nodes, of which sentences have unique ids."""

    page_keys: ClassVar = PAGE_KEYS

    def __init__(self, keep_retrieval_score: bool) -> None:
        super().__init__(keep_retrieval_score)
        self._number_of_sentence: dict[str, int] = {}  # index of each id in results
        # Hash of each node by its id(), since hashing a long document is slow.
        self._hash_of_node: dict[int, str] = {}

    @override
    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        """Add a sentence.

        Of two with the same id and text, the one with the higher score stays.
        """
        name = self._sentence_id(hit, text.items[hit.place.piece_number].node)
        while self._has_other_text(name, hit.text):
            name += "#2"
        n_results = len(self.results)
        number = self._number_of_sentence.setdefault(name, n_results)
        if number == n_results:
            self.results.append(self._sentence(name, hit, text))
        elif self.results[number].get_score() < hit.score:
            self.results[number] = self._sentence(name, hit, text)

    @override
    def add_piece(
        self,
        best: Hit,
        text: ReadText[NodeWithScore],
        piece_number: int,
        content: str,
        reductions: Mapping[str, float],
    ) -> None:
        node = text.items[piece_number].node
        if reductions:
            node = pruned_node(node, content, reductions)
        self.results.append(
            ScannedNode(node=node, **self.scores(best, text, piece_number))
        )

    @override
    def content(self, item_or_result: NodeWithScore) -> str:
        return text_of(item_or_result.node)

    @override
    def text_for_model(self, result: NodeWithScore) -> str:
        return result.node.get_content(metadata_mode=MetadataMode.LLM)

    @override
    def metadata_of(self, item: NodeWithScore) -> Mapping[str, Any]:
        return item.node.metadata

    @override
    def retrieval_score_of(self, item: NodeWithScore) -> float | None:
        return item.score

    def _has_other_text(self, name: str, text: str) -> bool:
        """Whether a sentence with this id has a different text."""
        number = self._number_of_sentence.get(name)
        return number is not None and self.results[number].node.get_content() != text

    def _sentence(
        self, name: str, hit: Hit, text: ReadText[NodeWithScore]
    ) -> ScannedNode:
        node = text.items[hit.place.piece_number].node
        metadata = result_metadata(node.metadata)
        metadata[ID_KEY] = name
        metadata |= self.place_metadata(hit, text)
        source = related(node, NodeRelationship.SOURCE)
        source_info = self._info(node)
        if source is not None:
            source_info = without_word_places(source)
        relationships = {
            NodeRelationship.SOURCE: source_info,
            NodeRelationship.PARENT: self._info(node),
        }
        sentence = sentence_node(name, hit, node, metadata, relationships)
        return ScannedNode(
            node=sentence, **self.scores(hit, text, hit.place.piece_number)
        )

    def _info(self, node: BaseNode) -> RelatedNodeInfo:
        return RelatedNodeInfo(
            node_id=node.node_id,
            node_type=node.get_type(),
            metadata=result_metadata(node.metadata),
            hash=self._hash(node),
        )

    def _hash(self, node: BaseNode) -> str:
        if id(node) not in self._hash_of_node:
            try:
                self._hash_of_node[id(node)] = node.hash
            except UnicodeEncodeError:  # LlamaIndex cannot hash a lone surrogate
                content = repr(node.metadata) + text_of(node)
                self._hash_of_node[id(node)] = _digest(content)
        return self._hash_of_node[id(node)]

    def _sentence_id(self, hit: Hit, node: BaseNode) -> str:
        """An id that is the same in every run.

        It is made of document and span, else of node and span, else of node and text.
        """
        place = hit.place
        if place.source_start is not None:
            document_name = self._document_name(node)
            return f"{document_name}:{place.source_start}-{place.source_end}"
        name = node.node_id
        if is_random_id(name):
            name = self._hash(node)[:24]
        if place.piece_start is not None:
            return f"{name}:{place.piece_start}-{place.piece_end}"
        return f"{name}:{_digest(hit.text)[:16]}"

    def _document_name(self, node: BaseNode) -> str:
        """The id of a node's document, or a hash if the next run has another id."""
        name = source_id(node)
        if not is_random_id(name):
            return name
        source = related(node, NodeRelationship.SOURCE)
        if source is None:
            return self._hash(node)[:24]
        return source.hash[:24] if source.hash else name


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
