"""What a strategy makes of a sub-document, and how it stands in a file."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from spscanner_rag.lab.synthesis.conversation import Conversation, Values
from spscanner_rag.lab.synthesis.filters import LanguageDetector, is_about_a_notice
from spscanner_rag.lab.synthesis.reply_form import MalformedReplyError
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.sub_documents import SubDocument

_LONGEST_QUESTION = 400
_MATERIAL = re.compile(
    r"\b(?:chunks?|connections?|linked units?|numbered (?:units?|sentences?))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Made:
    """A question with its evidence: character spans of the sub-document, in order.

    ``details`` say how it was made; `inspect` shows them.
    """

    question: str
    evidence: tuple[tuple[int, int], ...]
    answer: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class QuestionMaker(Protocol):
    """A strategy: makes one question of a sub-document."""

    name: str

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """The question; raises `DroppedError` if none can be made."""
        ...


@dataclass(frozen=True, slots=True)
class QuestionCheck:
    """Refuses questions that would teach the wrong thing."""

    settings: SynthesisSettings
    detector: LanguageDetector | None = None

    def of(self, sub: SubDocument) -> Callable[[Values], None]:
        """A check of values with a question about this sub-document, as `Conversation.values` takes it."""

        def check(values: Values) -> None:
            question = values["question"]
            if len(question) > _LONGEST_QUESTION:
                raise MalformedReplyError("the question is too long")
            for found in _MATERIAL.findall(question):
                if found.lower() not in sub.text.lower():
                    raise MalformedReplyError(
                        "the question speaks of chunks or connections", f"the question says {found}"
                    )
            if is_about_a_notice(question):
                raise MalformedReplyError("the question is about a licence or copyright notice")
            if self.detector is not None and self.detector.is_other(question, self.settings.language):
                raise MalformedReplyError(
                    "the question is in another language", f"expected a question in {self.settings.language}"
                )

        return check


def document_line(sub: SubDocument, made: Made, provenance: dict[str, Any]) -> dict[str, Any]:
    """A line of a question file: the sub-document with its question, and how it was made under "synthesis"."""
    question: dict[str, Any] = {
        "qid": f"{sub.doc_id}-{made.details.get('strategy', 'made')}",
        "question": made.question,
        "evidence": [list(span) for span in made.evidence],
    }
    if made.answer:
        question["answers"] = [made.answer]
    return {
        "doc_id": sub.doc_id,
        "source": sub.source,
        "split": "test" if sub.held_out else "train",
        "title": sub.title,
        "text": sub.text,
        "questions": [question],
        "synthesis": made.details | {"size": sub.size, "tokens": sub.tokens} | provenance,
    }
