"""What the model reads for each retriever and for whole documents, and whose answer is whose."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.lab.answers.answering import AnswerScore
from spscanner_rag.lab.evaluation.answer_run import (
    WHOLE_DOCUMENT,
    AnswerSet,
    answer_from,
    answer_rows,
    answer_tables,
    counts_of,
    questions_with_answers,
    retriever_sources,
    whole_documents,
)
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.tables import shown
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.llm.asking import Asked, Asker
from spscanner_rag.lab.llm.language_models import LanguageModel, Usage
from spscanner_rag.scanner import Scanner
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
    assert source.setting == setting
    assert scorer.seen == {"title of one"}
    otters = [int(number) for number in re.findall(r"Otter (\d+) ", text)]
    assert otters == sorted(otters)
    assert otters[-1] == 399
    words = {"sentence": 150, "chunk": 1201, "passage": 1201}[unit]
    assert len(text.split()) == words


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"words": 4}, "Otter 399 swims. Otter"),
        ({"words": 3}, "Otter 399 swims."),
        ({"best": 2}, "Otter 398 swims. Otter 399 swims."),
        ({"words": 10**6}, None),
    ],
)
def test_so_many_units_or_words_are_read(options: dict[str, int], text: str | None) -> None:
    titles: dict[str, str] = {}
    setting = Setting("last")
    (source,) = retriever_sources([setting], {setting: LastFirst(titles)}, titles, **options)
    (read,) = source.contexts(FIRST, FIRST.questions[0])
    assert read == text or len(read.split()) == len(FIRST.text.split())


def test_a_published_scanner_answers_from_its_own_units(published_checkpoint: Path) -> None:
    scanner = Scanner.from_pretrained(published_checkpoint, device="cpu", dtype="float32")
    setting = Setting("scanner:published")
    (source,) = retriever_sources([setting], {setting: scanner}, {})
    result = scanner.scan(question("a").text, FIRST.text)
    assert 50 < len(result.logits) < 400
    assert source.contexts(FIRST, question("a")) == (result.context(top_k=50),)


def test_answers_belong_to_their_questions_and_are_counted() -> None:
    model, judge = LanguageModel("m", last_otter), LanguageModel("j", lambda prompt: "DECISION: NO")
    asker, done = Asker(retries=0), list[int]()
    questions = questions_with_answers(ASKED)
    for judged in (judge, None):
        found = answer_from(
            whole_documents(window_tokens=500), questions, model, judged, asker, "phrase", done.append
        )
        assert found.setting == WHOLE_DOCUMENT
        got = [(document.doc_id, question.qid, score.answer) for document, question, score in found.answers]
        assert got == [("one", "a", "399"), ("one", "c", "399"), ("two", "d", "399")]
        assert found.answering.prompts > 3 * 4
        assert found.judging.prompts == (3 if judged else 0)
    assert done == [1, 2, 3] * 2


def scored(
    source: str, qid: str, f1: float | None, correct: bool | None, answer: str | None = "x"
) -> tuple[Document, Question, AnswerScore]:
    question = Question(qid, f"Is it {qid}?", (), answers=("y",))
    error = "gone" if answer is None else None
    match = None if f1 is None else float(f1 == 1)
    score = AnswerScore(answer, error, True, f1, match, correct)
    return Document(f"of {qid}", source, "", "", (question,)), question, score


BM25 = AnswerSet(
    Setting("bm25"),
    (
        scored("a", "1", 1.0, True),
        scored("a", "2", 0.5, False),
        scored("b", "3", 0.25, None),
        scored("b", "4", None, None, None),
        scored("b", "5", 0.75, True),
    ),
    Asked(5, Usage(1_000, 50)),
    Asked(4, Usage(300, 20)),
)
NOTHING = AnswerSet(WHOLE_DOCUMENT, (scored("a", "1", None, None, None),), Asked(1, Usage(9, 0)), Asked())


def test_rows_are_means_of_what_there_is() -> None:
    found = answer_rows([BM25, NOTHING])
    values = {
        (row["source"], row["metric"]): row["value"]
        for row in found
        if row["metric"] in ("accuracy", "token_f1")
    }
    assert values == {
        ("a", "accuracy"): 0.5,
        ("a", "token_f1"): 0.75,
        ("b", "accuracy"): 1.0,
        ("b", "token_f1"): 0.5,
        ("macro", "accuracy"): 0.75,
        ("macro", "token_f1"): 0.625,
        ("micro", "accuracy"): 2 / 3,
        ("micro", "token_f1"): 0.625,
    }
    assert {row["retriever"] for row in found} == {"bm25"}, "nothing was answered from whole documents"
    assert counts_of(BM25) == {
        "answers_from": "bm25",
        "answering": {"prompts": 5, "prompt_tokens": 1_000, "reply_tokens": 50},
        "judging": {"prompts": 4, "prompt_tokens": 300, "reply_tokens": 20},
    }


def test_the_table_counts_what_failed_and_what_was_not_decided() -> None:
    sets = [BM25, NOTHING]
    table, lengths = answer_tables(sets, answer_rows(sets), judged=True)
    body = [[shown(cell) for cell in cells] for cells in table.body]
    assert [cells[0] for cells in body] == ["bm25", "whole document"]
    assert body[0][1].startswith("75.0 (")
    assert body[0][4:] == ["5", "1", "1", "5", "1,000", "50"]
    assert body[1][1:] == ["-", "-", "-", "1", "1", "0", "1", "9", "0"]
    assert len(table.head) == len(body[0])
    assert [cells[:2] for cells in lengths.body] == [["bm25", "0"]]
    unjudged, _ = answer_tables([BM25], answer_rows([BM25]), judged=False)
    assert unjudged.body[0][6] == "0", "nothing was to decide"
