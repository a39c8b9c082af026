"""Models with one budget: what ends it ends it for all, and what was paid for is given without asking."""

from pathlib import Path

import pytest

from spscanner_rag.lab.answers.paid_models import PaidModels
from spscanner_rag.lab.llm.failures import LastingFailureError
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.metered import StoppedError
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.llm.spending import BudgetSpentError

WRITER, JUDGE = LanguageModel("writer", str.upper), LanguageModel("judge", str.title)


def refusing(prompt: str) -> str:
    raise PermissionError("invalid api key")


def test_models_share_a_budget_and_what_was_paid_for_stays(tmp_path: Path) -> None:
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        models = PaidModels(replies=replies, count_tokens=len, max_requests=2)
        writer, judge = models.paid(WRITER), models.paid(JUDGE)
        assert (writer("a b"), judge("a b")) == ("A B", "A B")
        assert models.stopped == ""
        with pytest.raises(BudgetSpentError):
            writer("c")
        assert models.stopped == "the limit of 2 requests is reached"
        with pytest.raises(StoppedError):
            judge("c")
        assert writer("a b") == "A B"
        assert (replies.attempts, replies.usage) == (2, (6, 6))
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        again = PaidModels(replies=replies, count_tokens=len, max_requests=3)
        assert again.paid(WRITER)("c") == "C", "two of three were asked before"
        with pytest.raises(BudgetSpentError):
            again.paid(JUDGE)("d")


def test_a_provider_that_refuses_ends_it_for_all(tmp_path: Path) -> None:
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        models = PaidModels(replies=replies, count_tokens=len)
        with pytest.raises(LastingFailureError):
            models.paid(LanguageModel("refusing", refusing))("a")
        assert models.stopped == "PermissionError: invalid api key"
        with pytest.raises(StoppedError):
            models.paid(JUDGE)("a")
