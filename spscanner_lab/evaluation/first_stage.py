"""Which documents of a corpus a question is asked of, and which of these are read."""

from collections.abc import Sequence

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_rag.results.document_scores import document_score
from spscanner_rag.results.ranking import best_first
from spscanner_rag.scorers import Scorer

NO_STAGE = "none"
"""The name of the first stage that lets all documents be read."""

WORDS = "bm25"
"""The name of the first stage that is the framework retrievers' index of words."""


def collection_of(
    corpus: SourceCorpus, query: str, right: int, among: int | None
) -> Sequence[int]:
    """The numbers of the documents that a question is asked of.

    These are all, or ``among`` of them: the ``right`` one and the nearest by BM25. If
    fewer documents share a word with the question, others follow in the order of the
    corpus.
    """
    documents = corpus.units("document")
    if among is None:
        return documents.every
    nearest = documents.index(documents.every).best_texts(query, among)
    nearest_numbers = [int(key) for key, _ in nearest]
    others = dict.fromkeys([*nearest_numbers, *documents.every])
    others.pop(right)
    return sorted([right, *list(others)[: among - 1]])


def documents_to_read(
    corpus: SourceCorpus,
    query: str,
    collection: Sequence[int],
    first_stage: Scorer | str | None,
    limit: int,
) -> Sequence[int]:
    """The documents of the collection that are read, in the order of the corpus.

    A first stage chooses at most ``limit`` of them. It is None to read all of them,
    "bm25" for the index of the framework retrievers (sentences and their surroundings),
    or a retriever, which ranks documents by their best chunk, as in a vector store.
    BM25 leaves out documents that share no word with the question, however few are
    left.
    """
    if first_stage is None or len(collection) <= limit:
        return collection
    if isinstance(first_stage, str):
        index = corpus.units("sentence").index(collection)
        positions = [int(key) for key, _ in index.best_texts(query, limit)]
    else:
        chunks = corpus.units("chunk")
        (scores,) = chunks.scores(first_stage, [query], collection, collection)
        document_scores = [document_score(values.logits) for values in scores]
        positions = [position for position, _ in best_first(document_scores)[:limit]]
    return sorted(collection[position] for position in positions)
