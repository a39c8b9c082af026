"""Counts of prompts and tokens: each different prompt once, those with a kept reply included."""

from pathlib import Path

from spscanner_rag.lab.answers.counted_asking import Asked, CountedAsker
from spscanner_rag.lab.llm.asking import Reply
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.llm.usage import Usage


def words(text: str) -> int:
    return len(text.split())


def reply(prompt: str) -> str:
    if "fail" in prompt:
        raise TimeoutError("too slow")
    return f"{prompt} indeed"


def test_different_prompts_are_counted_by_model() -> None:
    asker = CountedAsker(count_tokens=words, retries=0)
    model, judge = LanguageModel("m", reply), LanguageModel("m", lambda prompt: "YES")
    replies = asker.ask(model, iter(["a b", "a b", "fail now please"]))
    assert replies == [Reply("a b indeed"), Reply("a b indeed"), Reply(None, "TimeoutError: too slow")]
    asker.ask(model, ["c"])
    asker.ask(judge, ["a b"])
    assert asker.asked == {model: Asked(3, Usage(6, 5)), judge: Asked(1, Usage(2, 1))}


def test_a_kept_reply_counts_as_much(tmp_path: Path) -> None:
    model, counts = LanguageModel("m", reply), []
    for _ in range(2):
        with ReplyFile(tmp_path / "replies.jsonl") as replies:
            asker = CountedAsker(count_tokens=words, replies=replies)
            asker.ask(model, ["a b", "\ud800 c"])
            counts.append(asker.asked[model])
            assert replies.attempts == 2
    assert counts == [Asked(2, Usage(4, 6))] * 2
