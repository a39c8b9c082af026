"""Asking models: order, retries, failures, budgets, and nothing asked twice."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from spscanner_lab.llm.asking import Asker, NoReplyError, PromptCount, Reply
from spscanner_lab.llm.budget import Budget, Prices, RunEndedError
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.llm.replies import Usage
from spscanner_lab.llm.reply_file import ReplyFile
from tests.fakes import words


class RateLimitError(Exception):
    status_code = 429


class Model:
    """Raises these errors, one per call for each prompt, and then replies."""

    def __init__(self, *errors: Exception, reply: object = None) -> None:
        self.errors, self.fixed = errors, reply
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> object:
        with self._lock:
            self.calls[prompt] += 1
            count = self.calls[prompt]
        if count <= len(self.errors):
            raise self.errors[count - 1]
        return prompt.upper() if self.fixed is None else self.fixed


class Pauses(threading.Event):
    """Waits no time, and records how long the waits should have been."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return False


SLOW = TimeoutError("too slow")
USAGE: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def ask(model: Callable[[str], object], *prompts: str, **options: Any) -> list[Reply]:
    asker = Asker(**{"pause": 0, **options})
    return list(
        asker.in_order(
            prompts, lambda prompt: asker.reply(LanguageModel("m", model), prompt)
        )
    )


def ask_one(model: Callable[[str], object], prompt: str = "a", **options: Any) -> str:
    return Asker(**{"pause": 0, **options}).ask(LanguageModel("m", model), prompt)


@pytest.fixture
def replies(tmp_path: Path) -> ReplyFile:
    return ReplyFile(tmp_path / "replies.jsonl")


def records(file: ReplyFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.path.read_text().splitlines()]


def test_several_at_once_in_the_order_of_the_prompts(replies: ReplyFile) -> None:
    meeting = threading.Barrier(4, timeout=60)

    def wait_for_others(prompt: str) -> str:
        meeting.wait()
        return f"r{prompt}"

    prompts = [str(number) for number in range(8)]
    assert ask(wait_for_others, *prompts, workers=4) == [
        Reply(f"r{prompt}") for prompt in prompts
    ]
    assert ask(Model(), *"dcba", workers=1) == [Reply(prompt) for prompt in "DCBA"]
    assert ask(Model(), "a \ud800", replies=replies) == [Reply("A \ufffd")]


def test_equal_prompts_at_the_same_time_are_asked_once(replies: ReplyFile) -> None:
    model = Model()

    def slow(prompt: str) -> object:
        time.sleep(0.01)
        return model(prompt)

    assert [reply.text for reply in ask(slow, *"abaaac", replies=replies)] == list(
        "ABAAAC"
    )
    assert model.calls == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(("failures", "retries"), [(0, 0), (2, 2), (2, 5)])
def test_retried_until_it_works(failures: int, retries: int) -> None:
    model, budget = (
        Model(*[SLOW] * failures, reply=AIMessage("A", usage_metadata=USAGE)),
        Budget(),
    )
    assert ask(model, "a", retries=retries, budget=budget) == [Reply("A")]
    assert model.calls["a"] == budget.requests == failures + 1
    assert budget.usage == Usage(7, 3)


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (Model(SLOW, SLOW, SLOW), "TimeoutError: too slow"),
        (Model(reply=""), "the reply is blank"),
        (Model(reply=" \n\t"), "the reply is blank"),
        (Model(reply=7), "TypeError: the language model returned int; expected text"),
        (Model(*[RuntimeError("x" * 10_000)] * 3), f"RuntimeError: {'x' * 486}"),
    ],
)
def test_a_failure_stays_and_is_asked_again_later(
    model: Model, error: str, replies: ReplyFile
) -> None:
    assert ask(model, "a", replies=replies) == [Reply(None, error)]
    (record,) = records(replies)
    assert (record["error"], record["attempts"], "reply" in record) == (error, 3, False)
    with pytest.raises(NoReplyError, match=error[:40]):
        ask_one(Model(*model.errors, reply=model.fixed), retries=0)
    assert ask(Model(), "a", replies=replies) == [Reply("A")]


def test_pauses_grow() -> None:
    pauses = Pauses()
    assert ask_one(Model(SLOW, SLOW, SLOW), retries=5, pause=0.5, stop=pauses) == "A"
    first, second, third = [pause or 0 for pause in pauses.seconds]
    assert 0.5 <= first <= 0.625
    assert 1 <= second <= 1.25
    assert 2 <= third <= 2.5


def test_a_stop_ends_the_pauses_and_asks_nothing() -> None:
    stop, model = threading.Event(), Model()
    stop.set()
    with pytest.raises(RunEndedError, match="the run is ending"):
        ask_one(model, stop=stop)
    assert not model.calls

    def stopping(prompt: str) -> str:
        stop.set()
        raise SLOW

    stop.clear()
    began = time.monotonic()
    with pytest.raises(RunEndedError, match="the run is ending"):
        ask_one(stopping, pause=60, stop=stop)
    assert time.monotonic() - began < 30


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    for calls in ({"c": 1}, {}):
        first, second = Model(), Model()
        file = ReplyFile(tmp_path / "replies.jsonl")
        ask(first, "a", "b", replies=file)
        assert ask(second, "b", "a", "c", replies=file) == [
            Reply("B"),
            Reply("A"),
            Reply("C"),
        ]
        assert ask_one(second, "c", replies=file) == "C"
        assert Asker(replies=file).ask(LanguageModel("other", str.lower), "A") == "a"
        assert second.calls == calls
    assert first.calls == {}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RateLimitError("Error 429: insufficient_quota"), "insufficient_quota"),
        (ValueError("Your credit balance is too low"), "credit balance"),
        (
            type(
                "GoneError",
                (Exception,),
                {"response": SimpleNamespace(status_code=401)},
            )("no"),
            "GoneError: no",
        ),
    ],
)
def test_what_lasts_is_not_asked_again_by_any_model(
    error: Exception, words: str, replies: ReplyFile
) -> None:
    model, asker = Model(error), Asker(replies=replies)
    other = LanguageModel("other", Model())
    assert asker.ask(other, "kept") == "KEPT"
    with pytest.raises(RunEndedError, match=words):
        asker.ask(LanguageModel("m", model), "a")
    assert words in asker.budget.stopped
    with pytest.raises(RunEndedError, match=words):
        asker.ask(other, "b")
    assert all(words in str(asker.reply(other, prompt).error) for prompt in "bc")
    assert asker.stop.is_set()
    assert asker.reply(other, "kept") == Reply("KEPT")
    assert (model.calls["a"], len(replies), replies.attempts) == (1, 1, 2)


def test_a_limit_of_requests_counts_earlier_runs_and_all_models(tmp_path: Path) -> None:
    writer, judge = (
        LanguageModel("writer", str.upper),
        LanguageModel("judge", str.title),
    )

    def asker_of(most: int) -> Asker:
        file = ReplyFile(tmp_path / "replies.jsonl")
        budget = Budget(max_requests=most, requests=file.attempts, usage=file.usage)
        return Asker(replies=file, budget=budget, count_tokens=len)

    asker = asker_of(2)
    assert (asker.ask(writer, "a b"), asker.ask(judge, "a b")) == ("A B", "A B")
    assert asker.budget.stopped == ""
    for model in (writer, judge):
        with pytest.raises(RunEndedError, match="limit of 2 requests"):
            asker.ask(model, "c")
    assert asker.budget.stopped == "the limit of 2 requests is reached"
    assert asker.ask(writer, "a b") == "A B"
    asker = asker_of(3)
    assert (asker.budget.requests, asker.budget.usage) == (2, (6, 6))
    assert asker.reply(writer, "c") == Reply("C"), "two of three were asked before"
    assert "limit of 3 requests" in str(asker.reply(judge, "d").error)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.floats(0.001, 0.1))
def test_the_cost_passes_its_limit_by_one_reply_at_most(
    lengths: list[int], most: float
) -> None:
    prices = Prices(prompt=50, reply=1000)
    budget = Budget(prices=prices, max_cost=most)
    prompts = [f"{number} {place}" for place, number in enumerate(lengths)]
    ask(
        lambda prompt: "x " * int(prompt.split()[0]),
        *prompts,
        budget=budget,
        count_tokens=words,
        workers=1,
    )
    assert budget.cost <= most + prices.cost(Usage(2, 40))
    expected = sum(prices.cost(Usage(2, number)) for number in lengths)
    assert (
        budget.cost == pytest.approx(expected)
        or "could pass the limit of cost" in budget.stopped
    )


def test_the_cost_of_what_is_under_way_counts() -> None:
    budget = Budget(prices=Prices(reply=1000), max_cost=1.2)  # two replies

    def reply(prompt: str) -> str:
        time.sleep(0.05)  # so that all would be asked before the first reply
        return "x " * 500

    ask(reply, *"abcdefgh", budget=budget, count_tokens=words, workers=8)
    assert budget.cost == 1.0


def test_what_each_model_was_asked_is_counted_kept_replies_too(
    replies: ReplyFile,
) -> None:
    def reply(prompt: str) -> str:
        if "fail" in prompt:
            raise SLOW
        return f"{prompt} indeed"

    model, judge = LanguageModel("m", reply), LanguageModel("m2", lambda prompt: "YES")
    for _ in range(2):
        asker = Asker(count_tokens=words, retries=0, replies=replies)
        found = [
            asker.reply(model, prompt)
            for prompt in ("a b", "a b", "fail now please", "\ud800 c")
        ]
        error = "TimeoutError: too slow"
        assert found == [
            *[Reply("a b indeed")] * 2,
            Reply(None, error),
            Reply("\ufffd c indeed"),
        ]
        asker.reply(judge, "a b")
        assert asker.count_of(model) == PromptCount(3, Usage(7, 6))
        assert asker.count_of(judge) == PromptCount(1, Usage(2, 1))
    assert asker.count_of(LanguageModel("m3", reply)) == PromptCount()


def test_prompts_are_not_all_held() -> None:
    taken, seen = 0, list[int]()

    def prompts() -> Iterator[str]:
        nonlocal taken
        for taken in range(1, 201):
            yield str(taken)

    assert (
        len(
            list(
                Asker(workers=2).in_order(
                    prompts(), lambda item: seen.append(taken - int(item))
                )
            )
        )
        == 200
    )
    assert max(seen) <= 8


def test_context_variables_reach_the_model() -> None:
    trace: ContextVar[str] = ContextVar("trace")
    trace.set("run 7")
    assert ask(lambda prompt: trace.get(), "a", "b") == [Reply("run 7")] * 2


def test_an_error_or_an_interrupt_ends_it_and_keeps_what_came(
    replies: ReplyFile,
) -> None:
    def prompts() -> Iterator[str]:
        yield from "abcdefghij"
        raise OSError("the data file is gone")

    model = LanguageModel("m", asked := Model())
    asker = Asker(replies=replies, workers=1)
    with pytest.raises(OSError, match="the data file is gone"):
        list(asker.in_order(prompts(), lambda prompt: asker.reply(model, prompt)))
    asker = Asker(replies=replies, workers=1)
    with closing(
        asker.in_order(range(1000), lambda n: asker.reply(model, str(n)))
    ) as done:
        next(done)  # and an interrupt
    assert len(replies) == asked.calls.total() < 1000
