"""What is returned: a node with all of its scores. What depends on the question is no part of the node."""

from typing import Any

from llama_index.core.schema import NodeWithScore

from spscanner_rag.retrieval import scores_metadata


class ScannedNode(NodeWithScore):
    """A node with the scores that it got for one question.

    The node itself does not depend on the question, so that retrievers that fuse several results recognize it by
    its ``hash`` or its id.

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
    """

    logit: float
    document_score: float
    retrieval_score: float | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "ScannedNode"

    def scores(self) -> dict[str, float]:
        """Logit, document score and, if there is one, retrieval score, under their metadata keys."""
        return scores_metadata(self.logit, self.document_score, self.retrieval_score)


class Excerpt(ScannedNode):
    """A sentence, or a node cut down to its sentences: a `ScannedNode` whose node was made from a given one."""

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "Excerpt"

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the node's metadata with `scores`; write to ``node.metadata`` to change the node's."""
        return {**self.node.metadata, **self.scores()}
