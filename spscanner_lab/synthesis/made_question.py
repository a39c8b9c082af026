"""A question that was made from a sub-document, as a line of a question file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spscanner_lab.synthesis.sub_documents import SubDocument

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question with its evidence, and the stretches it was made from.

    ``evidence`` and ``contexts`` are spans of the sub-document, in order.
    """

    question: str
    evidence: tuple[Span, ...]
    contexts: tuple[Span, ...]
    answer: str = ""


def document_line(
    sub_document: SubDocument,
    made_question: MadeQuestion,
    strategy: str,
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a line of a question file: the sub-document and its question.

    The entry "synthesis" says how the question was made.
    """
    question: dict[str, Any] = {
        "qid": f"{sub_document.doc_id}-{strategy}",
        "question": made_question.question,
        "evidence": [list(span) for span in made_question.evidence],
    }
    if made_question.answer:
        question["answers"] = [made_question.answer]
    return {
        "doc_id": sub_document.doc_id,
        "source": sub_document.source,
        "split": "test" if sub_document.held_out else "train",
        "title": sub_document.title,
        "text": sub_document.text,
        "questions": [question],
        "synthesis": {
            "strategy": strategy,
            "contexts": [list(span) for span in made_question.contexts],
            "size": sub_document.size,
            "tokens": sub_document.tokens,
            **provenance,
        },
    }
