"""The components: a ranker of documents, and an extractor of sentences."""

from dataclasses import replace
from typing import Any, ClassVar

from haystack import Document, component
from typing_extensions import override

from haystack_integrations.components.spscanner.base_component import BaseComponent
from spscanner_rag.scorers import Cancelled, never


@component
class SPScannerRanker(BaseComponent):
    """Ranks documents by their best sentences.

    A document's score is that of its best sentence, from 0 to 1. Chunks that a splitter
    cut from one document are read together. Documents without text come last, unscored.

    Parameters
    ----------
    top_k : int, default 10
        Maximum number of documents to return; None for all.
    **fields
        Which model scores: ``model``, ``device``, ``model_kwargs`` or ``scorer``; also
        ``threshold``, ``require_answer``, ``batch_size`` and ``keep_retrieval_score``.

    Examples
    --------
    >>> from haystack import Document
    >>> documents = [
    ...     Document(content="The roof leaked all winter."),
    ...     Document(content="The lease began in May. Ada Byrne signed it."),
    ... ]
    >>> ranker = SPScannerRanker(top_k=1)
    >>> ranked = ranker.run("Who signed the lease?", documents)["documents"]
    >>> [document.content for document in ranked]
    ['The lease began in May. Ada Byrne signed it.']
    """

    fixed_fields: ClassVar = {"top_k": None, "return_nodes": "node", "order": "score"}

    def __init__(self, top_k: int | None = 10, **fields: Any) -> None:  # noqa: ANN401
        BaseComponent.__init__(self, top_k=top_k, **fields)

    @override
    def answer(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        limit = self._search(top_k).selection.top_k
        ranked = BaseComponent.answer(self, query, documents, None, cancelled)
        rules = (self._fields.threshold, self._fields.require_answer, self._fields.keep)
        if all(rule is None for rule in rules):
            ranked_ids = {document.id for document in ranked}
            for document in documents:
                if document.id not in ranked_ids:
                    ranked.append(replace(document, score=None))
        return ranked if limit is None else ranked[: int(limit)]


@component
class SPScannerExtractor(BaseComponent):
    """Extracts the sentences that matter, each as a document with place and score.

    Their meta are those of the document, with ``source_id``, ``split_idx_start``,
    ``split_idx_end`` and scores added.

    Parameters
    ----------
    top_k : int, float, str or None, default 50
        Maximum number of sentences of all documents together; below 1 a share; "elbow";
        None for no limit.
    **fields
        As for `SPScannerRanker`, and ``top_k_per_document``, ``max_tokens``,
        ``count_tokens``, ``order``, ``context_sentences``, ``merge_adjacent``,
        ``diversity``, ``always_keep`` and ``return_nodes``.

    Examples
    --------
    >>> from haystack import Document
    >>> lease = Document(content="The lease began in May. Ada Byrne signed it.")
    >>> extractor = SPScannerExtractor(top_k=1)
    >>> sentence = extractor.run("Who signed the lease?", [lease])["documents"][0]
    >>> sentence.content
    'Ada Byrne signed it.'
    >>> sentence.meta["split_idx_start"], sentence.meta["split_idx_end"]
    (24, 44)
    """

    def __init__(self, top_k: float | str | None = 50, **fields: Any) -> None:  # noqa: ANN401
        BaseComponent.__init__(self, top_k=top_k, **fields)
