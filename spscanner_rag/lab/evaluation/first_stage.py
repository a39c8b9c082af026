"""Which documents of a corpus a question is asked of, and which of these are read for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lab.evaluation.corpus_units import Shelf
from spscanner_rag.results.document_score import rank_documents
from spscanner_rag.scorers import Scorer


@dataclass(frozen=True)
class Reading:
    """How the documents that are read for a question are chosen.

    Attributes
    ----------
    among
        Ask the right document and the hardest others, this many together; None for the whole corpus.
    first_stage
        What ranks the documents: None to read all of them, "bm25" for the index of the framework retrievers
        (BM25 of sentences and their surroundings), or a retriever, by its best chunk of each document, as in a
        vector store that finds chunks.
    documents
        The most documents that are read after a first stage.
    """

    among: int | None = None
    first_stage: Scorer | str | None = None
    documents: int = 10


def asked_of(reading: Reading, shelf: Shelf, corpus: SourceCorpus, query: str, right: int) -> Sequence[int]:
    """The numbers of the documents that a question is asked of, in the order of the corpus.

    The hardest documents are the nearest to the question by BM25 over whole documents; where fewer share a word
    with it, others follow in the order of the corpus. ``right`` is the number of the right one.
    """
    documents = shelf.units(corpus, "document")
    if reading.among is None:
        return documents.every
    near = documents.index(documents.every).best_texts(query, reading.among)
    others = dict.fromkeys([*(int(key) for key, _ in near), *documents.every])
    others.pop(right)
    return sorted([right, *list(others)[: reading.among - 1]])


def documents_to_read(
    reading: Reading, shelf: Shelf, corpus: SourceCorpus, query: str, asked: Sequence[int]
) -> Sequence[int]:
    """Those of the documents asked that are read, in the order of the corpus.

    BM25 leaves out documents that share no word with the question, however few are left.
    """
    if reading.first_stage is None or len(asked) <= reading.documents:
        return asked
    if isinstance(reading.first_stage, str):
        found = shelf.units(corpus, "sentence").index(asked).best_texts(query, reading.documents)
        places = [int(key) for key, _ in found]
    else:
        scores = shelf.units(corpus, "chunk").scores(reading.first_stage, query, asked, asked)
        places = [ranked.number for ranked in rank_documents(scores)[: reading.documents]]
    return sorted(asked[place] for place in places)
