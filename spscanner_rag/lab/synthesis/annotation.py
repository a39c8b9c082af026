"""Sentences that a question needs, labelled by one language model and checked by another.

Two modes. "windows", as in section 8 of the paper: the model sees windows of 20 sentences that do not overlap,
with question and answer, and names the sentences that are needed. A second model must reproduce the answer from
these sentences alone; if it does not, a stronger model labels windows of 200 sentences, and the check is repeated.
"selection", as in its appendix E.6: windows of 200 sentences with a stride of 100, then one selection among the
candidates, then a check that the question can be answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from spscanner_rag.lab.answers.answer_scores import exact_match, token_f1
from spscanner_rag.lab.answers.judging import decision_in, judge_prompt, references_of
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError, listed
from spscanner_rag.lab.synthesis.reply_form import Field
from spscanner_rag.lab.synthesis.strategies.link import labels_agree
from spscanner_rag.text.segmentation import SentenceSegmenter

Mode = Literal["windows", "selection"]
Span = tuple[int, int]

WINDOW, WIDE_WINDOW, STRIDE = 20, 200, 100
_SAME_F1 = 0.9
"""Answers that share so many of their words are the same; for others the second model is asked."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question with the sentences that it needs, and how they were found."""

    question: Question
    how: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """Labels questions on documents.

    Attributes
    ----------
    labeller, stronger, checker : Conversation
        The model that labels, the one that labels again in wide windows, and the one that must reproduce the
        answer; it is also asked whether two answers that differ in words agree.
    mode : str, default "windows"
    """

    labeller: Conversation
    stronger: Conversation
    checker: Conversation
    mode: Mode = "windows"

    def with_fresh_counts(self) -> "Annotator":
        """The same, with counts of malformed replies of its own, which all three conversations share."""
        labeller = replace(self.labeller, malformed=type(self.labeller.malformed)())
        others = (replace(talk, malformed=labeller.malformed) for talk in (self.stronger, self.checker))
        stronger, checker = others
        return replace(self, labeller=labeller, stronger=stronger, checker=checker)

    def label(self, document: Document, question: Question) -> Labelled:
        """The question with its evidence.

        Raises `DroppedError` with the reason if the question has no answer in words, if no sentence is needed, or
        if the answer cannot be reproduced from what was labelled.
        """
        references = references_of(question.answers)
        if not references:
            raise DroppedError("the question has no answer")
        spans = [(unit.start, unit.end) for unit in SentenceSegmenter().segment(document.text)]
        if self.mode == "selection":
            return self._by_selection(document.text, spans, question, references)
        narrow = self._labels(self.labeller, document.text, spans, question, (WINDOW, WINDOW))
        if narrow and self._reproduced(document.text, spans, narrow, question, references):
            return _labelled(question, spans, narrow, {"window": WINDOW, "model": "first"})
        wide = self._labels(self.stronger, document.text, spans, question, (WIDE_WINDOW, WIDE_WINDOW))
        if not wide:
            raise DroppedError("no sentence is needed")
        if not self._reproduced(document.text, spans, wide, question, references):
            raise DroppedError("the answer was not reproduced")
        return _labelled(question, spans, wide, {"window": WIDE_WINDOW, "model": "stronger"})

    def _by_selection(
        self, text: str, spans: Sequence[Span], question: Question, references: Sequence[str]
    ) -> Labelled:
        candidates = self._labels(self.labeller, text, spans, question, (WIDE_WINDOW, STRIDE))
        if not candidates:
            raise DroppedError("no sentence is needed")
        shown = [spans[number] for number in candidates]
        values = self.stronger.values(
            "annotate_selection",
            self._sections(question) | {"SENTENCES": listed(text, shown)},
            [Field("relevant", "yes or no"), Field("indices", "indices", len(shown))],
            labels_agree,
        )
        if not values["relevant"]:
            raise DroppedError("no sentence is needed")
        chosen = [candidates[index] for index in values["indices"]]
        if not self._reproduced(text, spans, chosen, question, references):
            raise DroppedError("the question cannot be answered from the selection")
        return _labelled(question, spans, chosen, {"window": WIDE_WINDOW, "stride": STRIDE})

    def _labels(
        self,
        talk: Conversation,
        text: str,
        spans: Sequence[Span],
        question: Question,
        window: tuple[int, int],
    ) -> list[int]:
        """Numbers of the sentences that are needed, over all windows of a size and a stride."""
        size, stride = window
        found: set[int] = set()
        for first in range(0, max(1, len(spans) - (size - stride)), stride):
            shown = spans[first : first + size]
            values = talk.values(
                "annotate_labels",
                self._sections(question) | {"SENTENCES": listed(text, shown)},
                [Field("relevant", "yes or no"), Field("indices", "indices", len(shown))],
                labels_agree,
            )
            if values["relevant"]:
                found.update(first + index for index in values["indices"])
        return sorted(found)

    def _sections(self, question: Question) -> dict[str, str]:
        return {"QUESTION": question.text, "ANSWER": "\n".join(references_of(question.answers))}

    def _reproduced(
        self,
        text: str,
        spans: Sequence[Span],
        chosen: Sequence[int],
        question: Question,
        references: Sequence[str],
    ) -> bool:
        """Whether the checker, given these sentences alone, gives one of the right answers."""
        values = self.checker.values(
            "annotate_answer",
            {"QUESTION": question.text, "SENTENCES": listed(text, [spans[number] for number in chosen])},
            [Field("answerable", "yes or no"), Field("answer", "text")],
        )
        if not values["answerable"]:
            return False
        answer = values["answer"]
        if exact_match(answer, references) or token_f1(answer, references) >= _SAME_F1:
            return True
        return any(
            decision_in(self.checker.reply(judge_prompt(question.text, reference, answer))) is True
            for reference in references
        )


def _labelled(
    question: Question, spans: Sequence[Span], chosen: Sequence[int], how: dict[str, Any]
) -> Labelled:
    evidence = tuple(spans[number] for number in chosen)
    return Labelled(replace(question, evidence=evidence), how | {"sentences": len(chosen)})


def annotated_line(
    document: Document, labelled: Sequence[Labelled], provenance: dict[str, Any]
) -> dict[str, Any]:
    """A line of a question file: the document with the questions that were kept, and how under "annotation"."""
    return {
        "doc_id": document.doc_id,
        "source": document.source,
        "split": "test",
        "title": document.title,
        "text": document.text,
        "questions": [
            {
                "qid": each.question.qid,
                "question": each.question.text,
                "answers": list(each.question.answers),
                "evidence": [list(span) for span in each.question.evidence],
                "annotation": each.how,
            }
            for each in labelled
        ],
        "annotation": provenance,
    }
