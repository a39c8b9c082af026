"""A node with its scores for one question."""

from typing import Any

from llama_index.core.schema import NodeWithScore

from spscanner_rag.retrieval import SCORE_KEYS


class ScannedNode(NodeWithScore):
    """A node with its scores for one question.

    The node itself does not depend on the question: retrievers that fuse results match
    it by ``hash`` or id.

    Attributes
    ----------
    node, score
        The node, and the score of its best sentence, from 0 to 1: how much it is worth
        keeping, with 0.5 for the best balance. Of a scorer without such scores it is
        the probability.
    logit : float
        The scanner's output for its best sentence; may be negative.
    probability : float or None
        The sigmoid of ``logit``.
    document_score : float
        The score of the best sentence of its whole document, whether or not that
        sentence was selected.
    retrieval_score : float or None
        The score that it was retrieved with, if there was one and
        ``keep_retrieval_score`` is set.
    answerable : float or None
        The probability that its document answers the question; None if the scorer does
        not report it.
    """

    logit: float
    document_score: float
    probability: float | None = None
    retrieval_score: float | None = None
    answerable: float | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "ScannedNode"

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the node's metadata with the scores.

        To change the node, write to ``node.metadata``.
        """
        metadata = dict(self.node.metadata)
        for key in SCORE_KEYS:
            score = getattr(self, key.removeprefix("spscanner_"))
            if score is not None:
                metadata[key] = score
        return metadata
