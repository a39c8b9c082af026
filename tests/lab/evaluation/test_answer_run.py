"""What the model reads for each retriever and for whole documents, and whose answer is whose."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.answer_run import (
    WHOLE_DOCUMENT,
    answer_from,
    questions_with_answers,
    retriever_sources,
    whole_documents,
)
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

TEXT = " ".join(f"Otter {number} swims." for number in range(400))


class LastFirst:
    """Ranks the last units first, and remembers the title of what it reads."""

    segmenter = SentenceSegmenter()

    def __init__(self, titles: dict[str, str]) -> None:
        self.titles, self.seen = titles, set[str]()

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        self.seen.add(self.titles[text])
        return np.arange(len(units), dtype=np.float32)


def document(doc_id: str, *questions: Question) -> Document:
    return Document(doc_id, "walks", f"title of {doc_id}", f"{doc_id}. {TEXT}", questions)


def question(qid: str, *answers: str) -> Question:
    return Question(qid, f"Which otter, {qid}?", ((0, 3),), answers=answers)


FIRST = document("one", question("a", "399"), question("b", " "), question("c", "399"))
SECOND = document("two", question("d", "400"))
ASKED = {
    "walks": [(FIRST, q) for q in FIRST.questions[:2]]
    + [(SECOND, SECOND.questions[0]), (FIRST, FIRST.questions[2])]
}


def last_otter(prompt: str) -> str:
    return f"ANSWER: {re.findall(r'(?:Otter |ANSWER: )(.+?)(?: swims|$)', prompt, re.M)[-1]}"


def test_questions_go_document_by_document_without_those_that_have_no_answer() -> None:
    found = [(document.doc_id, question.qid) for document, question in questions_with_answers(ASKED)]
    assert found == [("one", "a"), ("one", "c"), ("two", "d")]
    with pytest.raises(ValueError, match="got questions without right answers"):
        questions_with_answers({"walks": [(FIRST, FIRST.questions[1])]})


@pytest.mark.parametrize(("unit", "units"), [("sentence", 50), ("chunk", 5), ("passage", 1)])
def test_the_best_units_are_read_in_the_order_of_the_document(unit: str, units: int) -> None:
    titles: dict[str, str] = {}
    setting, scorer = Setting("last", unit), LastFirst(titles)
    (source,) = retriever_sources([setting], {setting: scorer}, titles)
    (text,) = source.contexts(FIRST, FIRST.questions[0])
    assert source.label == setting.label
    assert scorer.seen == {"title of one"}
    otters = [int(number) for number in re.findall(r"Otter (\d+) ", text)]
    assert otters == sorted(otters)
    assert otters[-1] == 399
    words = {"sentence": 150, "chunk": 1201, "passage": 1201}[unit]
    assert len(text.split()) == words


def test_answers_belong_to_their_questions_and_are_counted() -> None:
    titles: dict[str, str] = {}
    setting = Setting("last")
    (source,) = retriever_sources([setting], {setting: LastFirst(titles)}, titles)
    model, judge = LanguageModel("m", last_otter), LanguageModel("j", lambda prompt: "DECISION: NO")
    asker = Asker(count_tokens=lambda text: len(text.split()), retries=0)
    questions = questions_with_answers(ASKED)
    found = answer_from(source, questions, model, judge, asker, "phrase")
    got = [(own.document.doc_id, own.question.qid, own.score.exact_match) for own in found.answers]
    assert got == [("one", "a", 1.0), ("one", "c", 1.0), ("two", "d", 0.0)]
    assert (found.answering.prompts, found.judging.prompts) == (3, 3)
    whole = answer_from(whole_documents(window_tokens=500), questions, model, None, asker, "phrase")
    assert whole.label == WHOLE_DOCUMENT
    assert [own.score.answer for own in whole.answers] == ["399"] * 3, "that of the last window"
    assert whole.answering.prompts > 3 * 4
    assert whole.answering.usage.prompt_tokens > 2 * found.answering.usage.prompt_tokens
    assert whole.judging.prompts == 0
