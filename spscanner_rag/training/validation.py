"""Recall of a model on documents it was not trained on."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from spscanner_rag.evaluation.data import Document, Question, relevant_units
from spscanner_rag.evaluation.metrics import CUTOFFS, recall_at
from spscanner_rag.scanner import Scanner

Recall = dict[int, float]


def sample_questions(
    documents: Iterable[Document], per_source: int, seed: int = 0
) -> dict[str, list[tuple[Document, Question]]]:
    """At most ``per_source`` questions with evidence of each source.

    Which ones is decided by a hash of seed and question id, so that the choice does not depend on the order of
    files, and a larger sample holds the smaller one.
    """
    found: dict[str, list[tuple[Document, Question]]] = {}
    for document in documents:
        for question in document.questions:
            if question.evidence and question.answerable:
                found.setdefault(document.source, []).append((document, question))
    return {
        source: sorted(pairs, key=lambda pair: _place(pair[0], pair[1], seed))[:per_source]
        for source, pairs in sorted(found.items())
    }


def validate(
    scanner: Scanner,
    sample: Mapping[str, list[tuple[Document, Question]]],
    progress: Callable[[], None] | None = None,
) -> dict[str, Recall]:
    """Mean recall at 1, 5, 10 and 50 by source, and their mean over sources under "macro".

    Parameters
    ----------
    scanner : Scanner
    sample : dict
        From `sample_questions`.
    progress : callable, optional
        Called after every document.
    """
    recalls = {}
    for source, pairs in sample.items():
        values: list[Recall] = []
        for document, questions in by_document(pairs):
            results = scanner.scan_many([(question.text, document.text) for question in questions])
            for question, result in zip(questions, results, strict=True):
                relevant = relevant_units(result.starts, result.ends, question.evidence)
                if relevant.any():
                    values.append(recall_at(result.logits, relevant))
            if progress is not None:
                progress()
        recalls[source] = mean_recall(values)
    recalls["macro"] = mean_recall(list(recalls.values()))
    return recalls


def mean_recall(values: list[Recall]) -> Recall:
    """The mean at each cut-off; 0 without values."""
    return {k: float(np.mean([value[k] for value in values])) if values else 0.0 for k in CUTOFFS}


def by_document(pairs: list[tuple[Document, Question]]) -> Iterator[tuple[Document, list[Question]]]:
    """Pairs gathered by document, so that each document is cut and tokenized once."""
    documents: dict[int, tuple[Document, list[Question]]] = {}
    for document, question in pairs:
        documents.setdefault(id(document), (document, []))[1].append(question)
    yield from documents.values()


def _place(document: Document, question: Question, seed: int) -> str:
    return hashlib.sha256(f"{seed}\n{document.doc_id}\n{question.qid}".encode("utf-8", "replace")).hexdigest()
