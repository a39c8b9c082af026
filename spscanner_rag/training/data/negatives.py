"""Documents that may stand as documents without an answer to another document's question."""

import re

from spscanner_rag.evidence.questions import Question
from spscanner_rag.training.data.document_store import DocumentStore

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


def holds_answer(question: Question, text: str) -> bool:
    """Whether a text has one of the question's answers, in whole words and whatever the case."""
    return any(
        re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.IGNORECASE)
        for answer in question.answers
        if answer.strip()
    )
