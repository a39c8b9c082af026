"""What is returned: a node with all of its scores. What depends on the question is no part of the node."""

from typing import Any

from llama_index.core.schema import NodeWithScore

from spscanner_rag.retrieval import compression_metadata, scores_metadata


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
    tokens_kept, tokens_read : int or None
        On request, the tokens of all results of the question together, and of all texts that were read for it.
    """

    logit: float
    document_score: float
    retrieval_score: float | None = None
    tokens_kept: int | None = None
    tokens_read: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "ScannedNode"

    def scores(self) -> dict[str, float]:
        """Logit, document score and, if there are any, retrieval score and tokens, under their metadata keys."""
        scores = scores_metadata(self.logit, self.document_score, self.retrieval_score)
        if self.tokens_kept is None or self.tokens_read is None:
            return scores
        return scores | compression_metadata(self.tokens_kept, self.tokens_read)


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
