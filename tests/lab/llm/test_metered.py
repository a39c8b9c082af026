"""A paid model: replies kept, usage counted, limits held, failures told apart."""

import threading
from pathlib import Path
from types import SimpleNamespace as Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from llama_index.core.llms import CompletionResponse

from spscanner_rag.lab.llm.failures import LastingFailureError, is_lasting, is_too_many, wait_asked_for
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.metered import MeteredModel, NoReplyError, StoppedError
from spscanner_rag.lab.llm.pace import Pace
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.llm.spending import BudgetSpentError, Prices, Spending
from spscanner_rag.lab.llm.usage import Usage, usage_of


class RateLimitError(Exception):
    status_code = 429


def message(prompt: str) -> object:
    return AIMessage(
        prompt.upper(), usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    )


def completion(**options: object) -> CompletionResponse:
    return CompletionResponse(text="a", **options)


class Failing:
    """Raises these errors, one a call, then replies."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self, prompt: str) -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return message(prompt)


def metered(ask: object, **options: object) -> MeteredModel:
    return MeteredModel(model=LanguageModel("m", ask), pause=0.0, **options)  # type: ignore[arg-type]


def test_a_reply_is_asked_for_once(tmp_path: Path) -> None:
    model = Failing()
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        paid = metered(model, replies=replies)
        assert [paid.ask("a"), paid.ask("a")] == ["A", "A"]
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        assert (replies.attempts, replies.usage) == (1, Usage(7, 3))
        again = metered(model, replies=replies, spending=Spending(requests=1, usage=replies.usage))
        assert again.ask("a") == "A"
        assert again.spending.usage == Usage(7, 3)
    assert model.calls == 1


def test_passing_failures_are_asked_again_and_counted() -> None:
    model = Failing(RateLimitError("slow down"), TimeoutError("too slow"))
    paid = metered(model)
    assert paid.ask("a") == "A"
    assert (model.calls, paid.spending.requests, paid.spending.usage) == (3, 3, Usage(7, 3))


def test_a_model_that_always_fails() -> None:
    with pytest.raises(NoReplyError, match="TimeoutError: too slow"):
        metered(Failing(*[TimeoutError("too slow")] * 9), retries=2).ask("a")
    with pytest.raises(NoReplyError, match="the reply is blank"):
        metered(lambda prompt: " \n", retries=1).ask("a")


@pytest.mark.parametrize("text", ["Error 429: insufficient_quota", "Your credit balance is too low"])
def test_no_quota_is_not_asked_again(text: str, tmp_path: Path) -> None:
    model = Failing(RateLimitError(text))
    with ReplyFile(tmp_path / "replies.jsonl") as replies:
        with pytest.raises(LastingFailureError, match=text[:10]):
            metered(model, replies=replies).ask("a")
        assert (len(replies), replies.attempts) == (0, 1)
    assert model.calls == 1


def test_failures_by_their_codes() -> None:
    wrong_key = Namespace(status_code=401)
    error = ValueError("no")
    error.response = wrong_key  # type: ignore[attr-defined]
    assert is_lasting(error)
    assert not is_lasting(TimeoutError("x"))
    assert is_too_many(RateLimitError("x"))
    assert not is_too_many(error)
    error.response = Namespace(headers={"retry-after": "12"})  # type: ignore[attr-defined]
    assert wait_asked_for(error) == 12
    error.response = Namespace(headers={"retry-after": "Mon, 1 Jan"})  # type: ignore[attr-defined]
    assert wait_asked_for(error) == 0 == wait_asked_for(TimeoutError())


def test_the_limit_of_requests_counts_earlier_runs() -> None:
    paid = metered(Failing(), spending=Spending(max_requests=3, requests=2))
    paid.ask("a")
    with pytest.raises(BudgetSpentError, match="limit of 3 requests"):
        paid.ask("b")


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.floats(0.001, 0.1))
def test_the_cost_passes_its_limit_by_one_reply_at_most(lengths: list[int], most: float) -> None:
    prices = Prices(prompt=50, reply=1000)
    paid = metered(
        lambda prompt: "x " * int(prompt),
        spending=Spending(prices, max_cost=most),
        count_tokens=lambda text: len(text.split()),
    )
    try:
        for number in lengths:
            paid.ask(str(number))
    except BudgetSpentError:
        pass
    assert paid.spending.cost <= most + prices.cost(Usage(1, 40))


def test_limits_that_mean_nothing() -> None:
    with pytest.raises(ValueError, match="without prices"):
        Spending(max_cost=1.0)
    with pytest.raises(ValueError, match="price of reply tokens: got -1"):
        Prices(reply=-1)
    with pytest.raises(ValueError, match="requests per minute: got 0"):
        Pace(0)


def test_a_steady_pace() -> None:
    now = [100.0]
    pace = Pace(per_minute=30, clock=lambda: now[0])
    assert [pace.delay() for _ in range(3)] == [0, 2, 4]
    now[0] += 10
    assert pace.delay() == 0
    pace.postpone(60)
    assert pace.delay() == 60


def test_a_stopped_run_asks_nothing() -> None:
    model, stop = Failing(), threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        metered(model, stop=stop).ask("a")
    assert model.calls == 0


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        (message("a"), Usage(7, 3)),
        (completion(raw={"usage": {"prompt_tokens": 5, "completion_tokens": 2}}), Usage(5, 2)),
        (completion(raw=Namespace(usage=Namespace(input_tokens=4, output_tokens=1))), Usage(4, 1)),
        (completion(additional_kwargs={"prompt_tokens": 6, "completion_tokens": 2}), Usage(6, 2)),
        (completion(raw={"prompt_eval_count": 9, "eval_count": 8}), Usage(9, 8)),
        ("a", None),
        (completion(), None),
    ],
)
def test_usage_of_either_framework(reply: object, usage: Usage | None) -> None:
    assert usage_of(reply) == usage
