"""Which documents and passages cannot be negatives of a question."""

import re
from collections import Counter
from collections.abc import Collection

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.document_store import DocumentStore

LABEL_SHARE = 0.05
"""An answer that more than this share of a source's documents, and more than two of
them, have is a label such as "no significant difference": whether a document
contains it says nothing about the question. If documents with labels were excluded
from the negatives, these words alone would tell a scanner which documents are right."""

_NO_WORD = re.compile(r"\W+")
_PIECE = re.compile(r"\.\d+$")


def labels_of(documents: DocumentStore) -> set[tuple[str, str]]:
    """The pairs of a source and an answer that is a label by `LABEL_SHARE`."""
    documents_by_source: Counter[str] = Counter()
    documents_by_answer: Counter[tuple[str, str]] = Counter()
    for number in range(len(documents)):
        document = documents.without_text(number)
        documents_by_source[document.source] += 1
        answers = set()
        for question in document.questions:
            for answer in question.answers:
                answers.add((document.source, same_words(answer)))
        documents_by_answer.update(answers)
    labels = set()
    for (source, answer), count in documents_by_answer.items():
        if count > max(2, LABEL_SHARE * documents_by_source[source]):
            labels.add((source, answer))
    return labels


def related(document: Document, other: Document) -> bool:
    """True if two documents of a source have a text or a title in common.

    They are the same, are pieces of one text, or have the same title.
    """
    title = same_words(document.title)
    if title and title == same_words(other.title):
        return True
    text_id = _PIECE.sub("", document.doc_id)
    return text_id == _PIECE.sub("", other.doc_id)


def has_answer(
    text: str, source: str, question: Question, labels: Collection[tuple[str, str]] = ()
) -> bool:
    """True if a text contains, as words, an answer to a question of ``source``.

    Answers that are labels do not count.

    Examples
    --------
    >>> question = Question("1", "When was it?", (), answers=("2008",))
    >>> has_answer("It happened in 2008.", "news", question)
    True
    >>> has_answer("It happened in 12008.", "news", question)
    False
    """
    for answer in question.answers:
        words = answer.strip()
        if not words or (source, same_words(answer)) in labels:
            continue
        if re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE):
            return True
    return False


def same_words(text: str) -> str:
    """The words of a text without case and punctuation.

    They are equal for texts with the same words.
    """
    return _NO_WORD.sub(" ", text).casefold().strip()
