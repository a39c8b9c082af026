"""Sentences that a question needs, labelled by one language model and checked by another.

Two modes. "windows", as in section 8 of the paper: the model sees windows of 20 sentences that do not overlap,
with question and answer, and names the sentences that are needed. A second model must reproduce the answer from
these sentences alone; if it does not, a stronger model labels windows of 200 sentences, and the check is repeated.
"selection", as in its appendix E.6: windows of 200 sentences with a stride of 100, then one selection among the
candidates, then a check that the question can be answered.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spscanner_rag.lab.answers.answering import references_of
from spscanner_rag.lab.answers.prompts import decision_in, judge_prompt
from spscanner_rag.lab.answers.scores import exact_match, token_f1
from spscanner_rag.lab.evidence.questions import Document, read_documents
from spscanner_rag.lab.llm.asking import RunEndedError, in_order
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.synthesis.conversation import (
    Conversation,
    DroppedError,
    listed,
    model_of,
    prompts_digest,
    read_prompts,
)
from spscanner_rag.lab.synthesis.making import RunOptions, asker_of, spent
from spscanner_rag.lab.synthesis.outcomes import REPLIES, SUMMARY, OutcomeFile, keep_settings, write_json
from spscanner_rag.lab.synthesis.reply_form import Field
from spscanner_rag.lab.training import Notify
from spscanner_rag.text.segmentation import SentenceSegmenter

Mode = Literal["windows", "selection"]
Span = tuple[int, int]

WINDOW, WIDE_WINDOW, STRIDE = 20, 200, 100
_SAME_F1 = 0.9  # answers that share so many of their words are the same; for others the second model is asked


class AnnotationModels(NamedTuple):
    """Names of the models that label, label again, and check; or objects of either framework."""

    labeller: object
    stronger: object
    checker: object


def annotate(
    paths: Iterable[Path],
    out: Path,
    models: AnnotationModels,
    options: RunOptions,
    *,
    mode: Mode = "windows",
    tries: int = 3,
    workers: int = 8,
    notify: Notify = lambda message: None,
) -> dict[str, Any]:
    """Label the questions of question files, and return the summary, which is also written.

    Questions need ``answers``; evidence that they have is not read. The folder, whose lock the caller holds,
    gets ``test.jsonl`` with the questions that were kept. The same call goes on after an interruption; the
    budget counts the requests of all three models.
    """
    paths = list(paths)
    chosen = [model_of(model, options.reply_form) for model in models]
    prompts = read_prompts(options.prompts)
    names = [model.language_model.name for model in chosen]
    settings = {"mode": mode, "tries": tries, "models": names, "prompts": prompts_digest(prompts)}
    keep_settings(out, settings | {"data": [str(path) for path in paths]})
    outcomes, stopped = OutcomeFile(out), ""
    with ReplyFile(out / REPLIES) as replies:
        stop = threading.Event()
        asker = asker_of(options, replies, notify, stop)
        talks = [Conversation(asker.ask_one, model, prompts, tries) for model in chosen]
        provenance = {"mode": mode, "labeller": names[0], "stronger": names[1], "checker": names[2]}

        def work(item: tuple[int, Document]) -> _Annotated:
            number, document = item
            return _annotated(number, document, talks, mode, provenance)

        numbered = islice(enumerate(read_documents(paths, distinct=True)), outcomes.done, None)
        try:
            with closing(in_order(numbered, work, workers, stop)) as results:
                for number, doc_id, line, counts in results:
                    outcomes.add(number, doc_id, line, "" if line else "no question was kept", counts)
        except RunEndedError as error:
            stopped = str(error)
        files = outcomes.write_files(out)
        summary = {
            "documents": outcomes.done,
            "questions": sum(len(line["questions"]) for line in outcomes.lines()),
            "dropped": dict(outcomes.malformed.most_common()),
            **spent(asker.budget),
            "files": files,
            "stopped": stopped,
        }
    write_json(out / SUMMARY, summary)
    return summary


_Annotated = tuple[int, str, dict[str, Any] | None, Counter[str]]
"""Number and id of a document, its line of a question file, and counts of what was dropped or malformed."""


def _annotated(
    number: int, document: Document, talks: Sequence[Conversation], mode: Mode, provenance: dict[str, Any]
) -> _Annotated:
    """Label the questions of a document; the line holds those that were kept, None if there is none."""
    malformed: Counter[str] = Counter()
    labeller, stronger, checker = (replace(talk, malformed=malformed) for talk in talks)
    spans = [(unit.start, unit.end) for unit in SentenceSegmenter().segment(document.text)]
    kept: list[dict[str, Any]] = []
    dropped: Counter[str] = Counter()
    for question in document.questions:
        references = references_of(question.answers)
        try:
            if not references:
                raise DroppedError("the question has no answer")
            labelling = _Labelling(
                labeller, stronger, checker, document.text, spans, question.text, references
            )
            chosen, how = labelling.by_selection() if mode == "selection" else labelling.by_windows()
        except DroppedError as error:
            dropped[str(error)] += 1
            continue
        kept.append(
            {
                "qid": question.qid,
                "question": question.text,
                "answers": list(question.answers),
                "evidence": [list(spans[number]) for number in chosen],
                "annotation": how | {"sentences": len(chosen)},
            }
        )
    line = {
        "doc_id": document.doc_id,
        "source": document.source,
        "split": "test",
        "title": document.title,
        "text": document.text,
        "questions": kept,
        "annotation": provenance,
    }
    return number, document.doc_id, line if kept else None, dropped + malformed


@dataclass(frozen=True, slots=True)
class _Labelling:
    """A question on a document whose sentences are labelled, and what three models are asked with."""

    labeller: Conversation
    stronger: Conversation
    checker: Conversation  # also asked whether two answers that differ in words agree
    text: str
    spans: Sequence[Span]
    question: str
    references: tuple[str, ...]

    def by_windows(self) -> tuple[list[int], dict[str, Any]]:
        """Return the sentences that are needed, and how they were found; raises `DroppedError` with the reason."""
        narrow = self._needed(self.labeller, WINDOW, WINDOW)
        if narrow and self._reproduced(narrow):
            return narrow, {"window": WINDOW, "model": "first"}
        wide = self._needed(self.stronger, WIDE_WINDOW, WIDE_WINDOW)
        if not wide:
            raise DroppedError("no sentence is needed")
        if not self._reproduced(wide):
            raise DroppedError("the answer was not reproduced")
        return wide, {"window": WIDE_WINDOW, "model": "stronger"}

    def by_selection(self) -> tuple[list[int], dict[str, Any]]:
        """Do the same in the mode "selection"."""
        candidates = self._needed(self.labeller, WIDE_WINDOW, STRIDE)
        chosen = self._named(self.stronger, "annotate_selection", candidates) if candidates else []
        if not chosen:
            raise DroppedError("no sentence is needed")
        if not self._reproduced(chosen):
            raise DroppedError("the question cannot be answered from the selection")
        return chosen, {"window": WIDE_WINDOW, "stride": STRIDE}

    def _needed(self, talk: Conversation, size: int, stride: int) -> list[int]:
        """Return the numbers of the sentences that are needed, over all windows of a size and a stride."""
        numbers, found = range(len(self.spans)), set[int]()
        for first in range(0, max(1, len(numbers) - (size - stride)), stride):
            found.update(self._named(talk, "annotate_labels", numbers[first : first + size]))
        return sorted(found)

    def _named(self, talk: Conversation, prompt: str, numbers: Sequence[int]) -> list[int]:
        """Return those of some sentences that the model names."""
        asked = {"QUESTION": self.question, "ANSWER": "\n".join(self.references)}
        spans = [self.spans[number] for number in numbers]
        return [numbers[index] for index in talk.labels(prompt, asked, "SENTENCES", self.text, spans)]

    def _reproduced(self, chosen: Sequence[int]) -> bool:
        """True if the checker, given these sentences alone, gives one of the right answers."""
        shown = listed(self.text, [self.spans[number] for number in chosen])
        values = self.checker.values(
            "annotate_answer",
            {"QUESTION": self.question, "SENTENCES": shown},
            [Field("answerable", "yes or no"), Field("answer", "text")],
        )
        answer = values["answer"]
        if not values["answerable"]:
            return False
        if exact_match(answer, self.references) or token_f1(answer, self.references) >= _SAME_F1:
            return True
        judged = (self.checker.reply(judge_prompt(self.question, right, answer)) for right in self.references)
        return any(decision_in(reply) is True for reply in judged)
