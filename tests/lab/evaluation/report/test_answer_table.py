"""Rows, table and lines of answers: means without what failed, and every answer on its line."""

from spscanner_rag.lab.answers.answering import AnswerScore, Verdict
from spscanner_rag.lab.evaluation.answer_run import AnswerSet, ScoredAnswer
from spscanner_rag.lab.evaluation.report.answer_table import answer_lines, answer_rows, answer_table
from spscanner_rag.lab.evaluation.report.tables import shown
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.llm.asking import Asked
from spscanner_rag.lab.llm.language_models import Usage


def scored(
    source: str, qid: str, f1: float | None, correct: bool | None, answer: str | None = "x"
) -> ScoredAnswer:
    question = Question(qid, f"Is it {qid}?", (), answers=("y",))
    verdict = None if answer is None else Verdict(correct, ("DECISION",))
    error = "gone" if answer is None else None
    match = None if f1 is None else float(f1 == 1)
    score = AnswerScore(qid, answer, error, True, f1, match, correct, verdict)
    return ScoredAnswer(Document(f"of {qid}", source, "", "", (question,)), question, score)


BM25 = AnswerSet(
    "bm25",
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
NOTHING = AnswerSet("whole document", (scored("a", "1", None, None, None),), Asked(1, Usage(9, 0)), Asked())


def test_rows_are_means_of_what_there_is() -> None:
    rows = {(row["answers_from"], row["source"]): row for row in answer_rows([BM25, NOTHING])}
    values = {
        key: [
            score["value"] if isinstance(score := row[name], dict) else None
            for name in ("accuracy", "token_f1")
        ]
        for key, row in rows.items()
    }
    assert values == {
        ("bm25", "a"): [0.5, 0.75],
        ("bm25", "b"): [1.0, 0.5],
        ("bm25", "macro"): [0.75, 0.625],
        ("bm25", "micro"): [2 / 3, 0.625],
        ("whole document", "a"): [None, None],
        ("whole document", "macro"): [None, None],
        ("whole document", "micro"): [None, None],
    }
    assert rows["bm25", "micro"]["answering"] == {"prompts": 5, "prompt_tokens": 1_000, "reply_tokens": 50}
    assert rows["bm25", "micro"]["judging"] == {"prompts": 4, "prompt_tokens": 300, "reply_tokens": 20}


def test_the_table_counts_what_failed_and_what_was_not_decided() -> None:
    sets = [BM25, NOTHING]
    table = answer_table(sets, answer_rows(sets), judged=True)
    body = [[shown(cell) for cell in cells] for cells in table.body]
    assert [cells[0] for cells in body] == ["bm25", "whole document"]
    assert body[0][1].startswith("75.0 (")
    assert body[0][4:] == ["5", "1", "1", "5", "1,000", "50"]
    assert body[1][1:] == ["-", "-", "-", "1", "1", "0", "1", "9", "0"]
    assert len(table.head) == len(body[0])
    unjudged = answer_table([BM25], answer_rows([BM25]), judged=False)
    assert unjudged.body[0][6] == "0", "nothing was to decide"


def test_every_answer_has_a_line() -> None:
    lines = answer_lines([BM25, NOTHING])
    assert [(line["answers_from"], line["source"], line["qid"]) for line in lines][::4] == [
        ("bm25", "a", "1"),
        ("bm25", "b", "5"),
    ]
    assert lines[3] | {"answer": None, "error": "gone", "verdict": None} == lines[3]
    assert lines[0] | {"references": ["y"], "token_f1": 1.0, "correct": True, "doc_id": "of 1"} == lines[0]
