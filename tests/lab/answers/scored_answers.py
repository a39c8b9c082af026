"""Scored answers of two settings, whose means are known by hand."""

from spscanner_lab.answers.answering import AnswerSet
from spscanner_lab.answers.contexts import WHOLE_DOCUMENT
from spscanner_lab.answers.scoring import AnswerScore
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.asking import PromptCount
from spscanner_lab.llm.replies import Usage
from spscanner_rag.baselines.settings import Setting

ScoredAnswer = tuple[Document, Question, AnswerScore]


def scored(
    source: str,
    qid: str,
    f1: float | None,
    correct: bool | None,
    answer: str | None = "x",
    *,
    category: str = "",
    tokens: int | None = None,
    choice: bool = False,
) -> ScoredAnswer:
    question = Question(
        qid, f"Is it {qid}?", (), answers=("y",), multiple_choice=choice
    )
    error = "gone" if answer is None else None
    match = None if f1 is None else float(f1 == 1)
    score = AnswerScore(answer, error, True, f1, match, correct)
    document = Document(
        f"of {qid}", source, "", "", (question,), category=category, tokens=tokens
    )
    return document, question, score


def set_of(*answers: ScoredAnswer) -> AnswerSet:
    """Answers from BM25 that cost nothing."""
    return AnswerSet(Setting("bm25"), answers, PromptCount(), PromptCount())


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
