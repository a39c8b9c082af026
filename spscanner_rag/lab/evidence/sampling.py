r"""Which questions are asked: a seeded sample, and the documents that training holds out.

The rule of ``--max-questions N --seed S``: the answerable questions with evidence of every source are sorted by
the SHA-256 of ``"{S}\n{doc_id}\n{qid}"`` (UTF-8, as hexadecimal digits), and the first N are asked. The order does
not depend on files, on other questions or on Python's hash seed; a larger sample contains the smaller one.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator

from spscanner_rag.lab.evidence.questions import Document, Question

Asked = tuple[Document, Question]


def sample_questions(
    documents: Iterable[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    answerable: bool = True,
    answered: bool = False,
) -> dict[str, list[Asked]]:
    """At most ``per_source`` questions with evidence of each source, by this module's rule, with documents.

    ``answerable=False`` samples the questions that their document does not answer; ``answered`` also those that
    have right answers, but no evidence.
    """
    found: dict[str, list[Asked]] = {}
    for document in documents:
        for question in document.questions:
            known = question.evidence or (answered and any(map(str.strip, question.answers)))
            if known and question.answerable if answerable else not question.answerable:
                found.setdefault(document.source, []).append((document, question))
    return {
        source: sorted(pairs, key=lambda pair: _sort_key(pair, seed))[:per_source]
        for source, pairs in sorted(found.items())
    }


def by_document(pairs: Iterable[Asked]) -> Iterator[tuple[Document, list[Question]]]:
    """Group pairs by document, so that each document is cut and read once."""
    documents: dict[int, tuple[Document, list[Question]]] = {}
    for document, question in pairs:
        documents.setdefault(id(document), (document, []))[1].append(question)
    yield from documents.values()


def is_held_out(doc_id: str) -> bool:
    """Whether a document is in the tenth that training leaves out: the SHA-1 of its id ends in a decimal 0."""
    digest = hashlib.sha1(doc_id.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return int(digest, 16) % 10 == 0


def only_held_out(documents: Iterable[Document], sources: Collection[str]) -> Iterator[Document]:
    """Keep only the held-out tenth of the given sources (which have no dev file), and all other documents."""
    return (
        document for document in documents if document.source not in sources or is_held_out(document.doc_id)
    )


def _sort_key(asked: Asked, seed: int) -> tuple[str, str, tuple[tuple[int, int], ...]]:
    document, question = asked
    key = f"{seed}\n{document.doc_id}\n{question.qid}".encode("utf-8", "replace")
    # text and evidence break the tie where a file gives two questions the same id
    return hashlib.sha256(key).hexdigest(), question.text, question.evidence
