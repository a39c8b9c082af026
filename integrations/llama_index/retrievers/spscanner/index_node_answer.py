"""Results that keep index nodes whole."""

from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore
from typing_extensions import override

from llama_index.postprocessor.spscanner.node_answer import NodeAnswer
from spscanner_rag.retrieval import Hit, ReadText


class IndexNodeAnswer(NodeAnswer):
    """Results that keep an `IndexNode` with an object whole.

    The base class of retrievers can then query that object.
    """

    @override
    def add_sentence(self, hit: Hit, text: ReadText[NodeWithScore]) -> None:
        node = text.items[hit.place.piece_number].node
        if not isinstance(node, IndexNode) or node.obj is None:
            super().add_sentence(hit, text)
        elif not self._has(node):
            self.add_piece(hit, text, hit.place.piece_number, "", {})

    def _has(self, node: BaseNode) -> bool:
        return any(result.node is node for result in self.results)
