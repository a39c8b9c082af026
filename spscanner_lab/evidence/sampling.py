r"""Which questions of files are used, and which documents training leaves out.

The rule of ``--max-questions N --seed S``: the answerable questions with evidence of
every source are sorted by the SHA-256 of ``"{S}\n{doc_id}\n{qid}"`` (UTF-8, as
hexadecimal digits), and the first N are used. The order does not depend on files, on
other questions or on Python's hash seed; a larger sample contains the smaller one.
"""

import hashlib
from collections.abc import Iterable, Iterator

from spscanner_lab.evidence.questions import Document, Question, QuestionOnDocument


def sample_questions(
    documents: Iterable[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    answerable: bool = True,
    answered: bool = False,
) -> dict[str, list[QuestionOnDocument]]:
    """Return up to ``per_source`` questions with evidence from each source.

    They are chosen by the rule above, and come with their documents.
    ``answerable=False`` samples the questions that their document does not answer;
    ``answered`` includes those that have right answers, but no evidence.

    Examples
    --------
    >>> from spscanner_lab.evidence.questions import Document, Question
    >>> from spscanner_lab.evidence.sampling import sample_questions
    >>> question = Question("q1", "Who slept?", ((0, 20),))
    >>> document = Document("d1", "logs", "", "The captain slept.", (question,))
    >>> list(sample_questions([document], 10))
    ['logs']
    """
    by_source: dict[str, list[QuestionOnDocument]] = {}
    for document in documents:
        for question in document.questions:
            if answerable:
                fits = question.answerable and _has_answer(question, answered)
            else:
                fits = not question.answerable
            if fits:
                questions = by_source.setdefault(document.source, [])
                questions.append((document, question))

    def rank_of(
        pair: QuestionOnDocument,
    ) -> tuple[str, str, tuple[tuple[int, int], ...]]:
        document, question = pair
        key = f"{seed}\n{document.doc_id}\n{question.qid}".encode("utf-8", "replace")
        # text and evidence break the tie where a file gives two questions the same id
        return hashlib.sha256(key).hexdigest(), question.text, question.evidence

    sampled = {}
    for source, questions in sorted(by_source.items()):
        sampled[source] = sorted(questions, key=rank_of)[:per_source]
    return sampled


def _has_answer(question: Question, in_words: bool) -> bool:
    """Whether a question has evidence or, if that is enough, an answer in words."""
    if question.evidence:
        return True
    return in_words and any(answer.strip() for answer in question.answers)


def by_document(
    pairs: Iterable[QuestionOnDocument],
) -> Iterator[tuple[Document, list[Question]]]:
    """Group pairs by document, so that each document is cut and read once."""
    groups: dict[int, tuple[Document, list[Question]]] = {}
    for document, question in pairs:
        _, questions = groups.setdefault(id(document), (document, []))
        questions.append(question)
    yield from groups.values()


def is_held_out(doc_id: str) -> bool:
    """Whether a document is in the tenth that training leaves out.

    It is if the SHA-1 of its id ends in a decimal 0.

    Examples
    --------
    >>> from spscanner_lab.evidence.sampling import is_held_out
    >>> list(map(is_held_out, ["document-0", "document-1"]))
    [True, False]
    """
    encoded = doc_id.encode("utf-8", "replace")
    digest = hashlib.sha1(encoded, usedforsecurity=False).hexdigest()
    return int(digest, 16) % 10 == 0
