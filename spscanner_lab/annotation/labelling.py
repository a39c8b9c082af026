"""Labels the sentences that a question needs, and checks that they answer it.

As in section 8 of the paper: a model sees windows of 20 sentences that do not overlap,
with the question and its answer, and names the sentences that are needed. A second
model must reproduce the answer from these sentences alone. If it does not, a stronger
model labels windows of 200 sentences, and the check is repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spscanner_lab.answers.matching import exact_match, references_of, token_f1
from spscanner_lab.answers.prompts import judge_prompt
from spscanner_lab.answers.replies import decision_in
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.synthesis.checks import check_labels
from spscanner_lab.synthesis.conversation import Conversation, DroppedError, listed
from spscanner_lab.synthesis.reply_form import Field
from spscanner_rag.text.segmentation import SentenceSegmenter

Span = tuple[int, int]

NARROW_WINDOW = 20
WIDE_WINDOW = 200

_SAME_F1 = 0.9
"""Answers that share so many of their words are the same.

Of others, the model that checks is asked whether they agree.
"""


class LabelledQuestion(NamedTuple):
    """A question with the sentences that it needs as evidence.

    Attributes
    ----------
    question : Question
        The question.
    window : int
        How many sentences the model that found them saw at once.
    model : str
        The name of that model.
    """

    question: Question
    window: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Labeller:
    """A language model that names the sentences of a document that a question needs.

    Attributes
    ----------
    conversation : Conversation
        Asks the model.
    name : str
        The model's name.
    window : int
        How many sentences it sees at once.
    """

    conversation: Conversation
    name: str
    window: int

    def label(
        self, text: str, sentences: Sequence[Span], question: Question
    ) -> list[Span]:
        """Return the sentences that are needed, over all windows."""
        relevant: list[Span] = []
        for first in range(0, len(sentences), self.window):
            shown = sentences[first : first + self.window]
            sections = {
                "QUESTION": question.text,
                "ANSWER": "\n".join(references_of(question.answers)),
                "SENTENCES": listed(text, shown),
            }
            fields = [
                Field("relevant", "yes or no"),
                Field("indices", "indices", len(shown)),
            ]
            labels = self.conversation.values(
                "label_sentences", sections, fields, check_labels
            )
            relevant += [shown[number] for number in labels["indices"]]
        return relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck:
    """A language model that must give the right answer from the labelled sentences.

    Attributes
    ----------
    conversation : Conversation
        Asks the model for its answer.
    ask : callable
        Sends the model a prompt, to ask whether answers in other words agree.
    """

    conversation: Conversation
    ask: Callable[[str], str]

    def is_reproduced(
        self, text: str, sentences: Sequence[Span], question: Question
    ) -> bool:
        """Whether the model gives one of the right answers from these sentences."""
        sections = {"QUESTION": question.text, "SENTENCES": listed(text, sentences)}
        fields = [Field("answerable", "yes or no"), Field("answer", "text")]
        values = self.conversation.values("check_answer", sections, fields)
        if not values["answerable"]:
            return False
        answer = values["answer"]
        references = references_of(question.answers)
        if exact_match(answer, references) or token_f1(answer, references) >= _SAME_F1:
            return True
        for reference in references:
            prompt = judge_prompt(
                question.text,
                reference,
                answer,
                multiple_choice=question.is_choice,
            )
            if decision_in(self.ask(prompt)) is True:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Annotator:
    """Labels questions: a first model, a check, and a stronger model where that fails.

    Examples
    --------
    >>> from spscanner_lab.annotation.annotating import annotator_of
    >>> from spscanner_lab.evidence.questions import Document, Question
    >>> text = "The heron flew. Captain Smith signed the treaty. It rained."
    >>> question = Question("q1", "Who signed the treaty?", (), answers=("Smith",))
    >>> annotator = annotator_of("scripted")
    >>> labelled = annotator.label(Document("d1", "logs", "", text, ()), question)
    >>> [text[start:end] for start, end in labelled.question.evidence]
    ['Captain Smith signed the treaty.']
    """

    labeller: Labeller
    stronger: Labeller
    check: AnswerCheck

    def label(self, document: Document, question: Question) -> LabelledQuestion:
        """Return a question with its evidence.

        `DroppedError` says why there is none: the question has no answer in words, no
        sentence is needed, or the answer cannot be reproduced from the sentences.
        """
        if not references_of(question.answers):
            raise DroppedError("the question has no answer")
        text = document.text
        units = SentenceSegmenter().segment(text)
        sentences = [(unit.start, unit.end) for unit in units]
        reason = "no sentence is needed"
        for labeller in (self.labeller, self.stronger):
            evidence = labeller.label(text, sentences, question)
            if not evidence:
                continue
            if self.check.is_reproduced(text, evidence, question):
                labelled = replace(question, evidence=tuple(evidence))
                return LabelledQuestion(labelled, labeller.window, labeller.name)
            reason = "the answer was not reproduced"
        raise DroppedError(reason)


def annotated_line(
    document: Document,
    labelled_questions: Sequence[LabelledQuestion],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a line of a question file: a document with its labelled questions.

    The entry "annotation" says which models labelled and checked them.
    """
    line: dict[str, Any] = {
        "doc_id": document.doc_id,
        "source": document.source,
        "split": "test",
        "title": document.title,
        "text": document.text,
        "questions": list(map(_question_entry, labelled_questions)),
        "annotation": dict(provenance),
    }
    if document.category:
        line["category"] = document.category
    if document.tokens is not None:
        line["tokens"] = document.tokens
    return line


def _question_entry(labelled: LabelledQuestion) -> dict[str, Any]:
    question = labelled.question
    entry: dict[str, Any] = {
        "qid": question.qid,
        "question": question.text,
        "answers": list(question.answers),
        "evidence": [list(span) for span in question.evidence],
        "annotation": {"window": labelled.window, "model": labelled.model},
    }
    if question.choices:
        entry["choices"] = list(question.choices)
    if question.answer_form:
        entry["answer_form"] = question.answer_form
    if question.multiple_choice:
        entry["multiple_choice"] = True
    return entry
