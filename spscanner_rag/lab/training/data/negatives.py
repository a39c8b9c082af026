"""Documents that may stand as documents without an answer to another document's question."""

import re
from collections import Counter

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.data.document_store import DocumentStore

LABEL_SHARE = 0.05
"""An answer to questions about more than this share of a source's documents, and more than two, is a label such as
"no significant difference": whether a document has these words says nothing about the question. If documents with
them were left out, their words alone would tell a scanner which documents are right."""

_NO_WORD = re.compile(r"\W+")
_PIECE = re.compile(r"\.\d+$")


class Families:
    """Which documents belong together: pieces of one text, and documents of a source with the same title."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    def related(self, one: int, other: int) -> bool:
        """Whether two documents of a source, by number, are the same or belong together."""
        first, second = self._documents.without_text(one), self._documents.without_text(other)
        title = same_words(first.title)
        if title and title == same_words(second.title):
            return True
        return one == other or _PIECE.sub("", first.doc_id) == _PIECE.sub("", second.doc_id)


def same_words(text: str) -> str:
    """The words of a text, without case and punctuation: equal for texts in the same words."""
    return _NO_WORD.sub(" ", text).casefold().strip()


class AnswerWords:
    """The answers by which a document that answers a question is known: all but labels."""

    def __init__(self, documents: DocumentStore) -> None:
        sizes: Counter[str] = Counter()
        given: Counter[tuple[str, str]] = Counter()
        for number in range(len(documents)):
            document = documents.without_text(number)
            sizes[document.source] += 1
            answers = {same_words(answer) for question in document.questions for answer in question.answers}
            given.update((document.source, answer) for answer in answers)
        self._labels = {
            (source, answer)
            for (source, answer), count in given.items()
            if count > max(2, LABEL_SHARE * sizes[source])
        }

    def are_in(self, text: str, source: str, question: Question) -> bool:
        """Whether a text has an answer to a question of ``source``, in whole words and whatever the case."""
        return any(
            re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.IGNORECASE)
            for answer in question.answers
            if answer.strip() and (source, same_words(answer)) not in self._labels
        )
