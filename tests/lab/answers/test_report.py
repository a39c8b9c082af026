"""Rows and tables of a report on answers."""

from spscanner_lab.answers.answering import (
    AnswerSet,
)
from spscanner_lab.answers.contexts import (
    WHOLE_DOCUMENT,
)
from spscanner_lab.answers.report import answer_rows, answer_tables, counts_of
from spscanner_lab.answers.scoring import AnswerScore
from spscanner_lab.evaluation.tables import shown
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.asking import PromptCount
from spscanner_lab.llm.replies import Usage
from spscanner_rag.baselines.settings import Setting


def scored(
    source: str,
    qid: str,
    f1: float | None,
    correct: bool | None,
    answer: str | None = "x",
) -> tuple[Document, Question, AnswerScore]:
    question = Question(qid, f"Is it {qid}?", (), answers=("y",))
    error = "gone" if answer is None else None
    match = None if f1 is None else float(f1 == 1)
    score = AnswerScore(answer, error, True, f1, match, correct)
    return Document(f"of {qid}", source, "", "", (question,)), question, score


OF_BM25 = AnswerSet(
    Setting("bm25"),
    (
        scored("a", "1", 1.0, True),
        scored("a", "2", 0.5, False),
        scored("b", "3", 0.25, None),
        scored("b", "4", None, None, None),
        scored("b", "5", 0.75, True),
    ),
    PromptCount(5, Usage(1_000, 50)),
    PromptCount(4, Usage(300, 20)),
)


NOTHING = AnswerSet(
    WHOLE_DOCUMENT,
    (scored("a", "1", None, None, None),),
    PromptCount(1, Usage(9, 0)),
    PromptCount(),
)


def test_rows_are_means_of_what_there_is() -> None:
    found = answer_rows([OF_BM25, NOTHING])
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
    assert {row["retriever"] for row in found} == {"bm25"}, (
        "nothing was answered from whole documents"
    )
    assert counts_of(OF_BM25) == {
        "answers_from": "bm25",
        "answering": {"prompts": 5, "prompt_tokens": 1_000, "reply_tokens": 50},
        "judging": {"prompts": 4, "prompt_tokens": 300, "reply_tokens": 20},
    }


def test_the_table_counts_what_failed_and_what_was_not_decided() -> None:
    sets = [OF_BM25, NOTHING]
    table, lengths = answer_tables(sets, answer_rows(sets), judged=True)
    body = [[shown(cell) for cell in cells] for cells in table.body]
    assert [cells[0] for cells in body] == ["bm25", "whole document"]
    assert body[0][1].startswith("75.0 (")
    assert body[0][4:] == ["5", "1", "1", "5", "1,000", "50"]
    assert body[1][1:] == ["-", "-", "-", "1", "1", "0", "1", "9", "0"]
    assert len(table.head) == len(body[0])
    assert [cells[:2] for cells in lengths.body] == [["bm25", "0"]]
    unjudged, _ = answer_tables([OF_BM25], answer_rows([OF_BM25]), judged=False)
    assert unjudged.body[0][6] == "0", "nothing was to decide"
