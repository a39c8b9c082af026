"""Many prompts at once: order, retries, failures, and nothing asked twice."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest

from spscanner_rag.lab.llm.asking import Asker, Reply
from spscanner_rag.lab.llm.language_models import language_model_of
from spscanner_rag.lab.llm.replies import ReplyFile


class Model:
    """A function that counts its calls and fails as often as it is told to."""

    def __init__(self, failures: int = 0, reply: object = None, error: Exception | None = None) -> None:
        self.failures, self.fixed, self.error = failures, reply, error or TimeoutError("too slow")
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> object:
        with self._lock:
            self.calls[prompt] += 1
            count = self.calls[prompt]
        if count <= self.failures:
            raise self.error
        return prompt.upper() if self.fixed is None else self.fixed


def ask(model: Model, *prompts: str, asker: Asker | None = None) -> list[Reply]:
    return (asker or Asker(pause=0)).ask(language_model_of(model, name="m"), prompts)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_replies_in_the_order_of_the_prompts(workers: int) -> None:
    def slow_first(prompt: str) -> str:
        time.sleep(0.002 * (30 - int(prompt)) % 0.01)
        return f"r{prompt}"

    prompts = [str(number) for number in range(30)]
    replies = Asker(workers=workers).ask(language_model_of(slow_first), iter(prompts))
    assert [reply.text for reply in replies] == [f"r{prompt}" for prompt in prompts]


def test_several_at_once() -> None:
    meeting = threading.Barrier(4, timeout=60)

    def wait_for_others(prompt: str) -> str:
        meeting.wait()
        return prompt

    replies = Asker(workers=4).ask(language_model_of(wait_for_others), map(str, range(8)))
    assert [reply.text for reply in replies] == [str(number) for number in range(8)]


def test_equal_prompts_are_asked_once() -> None:
    model = Model()
    assert [reply.text for reply in ask(model, "a", "b", "a", "a")] == ["A", "B", "A", "A"]
    assert model.calls == {"a": 1, "b": 1}


def test_no_prompts() -> None:
    assert ask(Model()) == []


@pytest.mark.parametrize(("failures", "retries"), [(0, 0), (1, 1), (2, 2), (2, 5)])
def test_retried_until_it_works(failures: int, retries: int) -> None:
    model = Model(failures)
    assert ask(model, "a", asker=Asker(retries=retries, pause=0)) == [Reply("A")]
    assert model.calls["a"] == failures + 1


def test_a_failure_stays_a_failure(tmp_path: Path) -> None:
    with ReplyFile(tmp_path / "replies.jsonl") as file:
        replies = ask(Model(3), "a", "b", asker=Asker(replies=file, retries=2, pause=0))
    assert replies == [Reply(None, "TimeoutError: too slow")] * 2
    lines = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    assert [(line["error"], line["attempts"], "reply" in line) for line in lines] == [
        ("TimeoutError: too slow", 3, False)
    ] * 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("", "the reply is blank"),
        (" \n\t", "the reply is blank"),
        (7, "TypeError: the language model returned int"),
    ],
)
def test_a_reply_that_is_none(reply: object, error: str) -> None:
    (got,) = ask(Model(reply=reply), "a")
    assert got.text is None
    assert got.error is not None
    assert got.error.startswith(error)


def test_long_errors_are_cut() -> None:
    (got,) = ask(Model(9, error=RuntimeError("x" * 10_000)), "a")
    assert got.error is not None
    assert len(got.error) == 500


def test_pauses_grow() -> None:
    pauses: list[float | None] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return False

    asker = Asker(retries=3, pause=0.5)
    reply = asker._reply(language_model_of(Model(9), name="m"), "a", "digest", Event())
    assert reply.text is None
    assert pauses == [0.5, 1.0, 2.0]


def test_a_stop_ends_the_pauses() -> None:
    stop, model = threading.Event(), Model(9)
    stop.set()
    began = time.monotonic()
    Asker(retries=3, pause=60)._reply(language_model_of(model, name="m"), "a", "digest", stop)
    assert time.monotonic() - began < 30
    assert model.calls["a"] == 1


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    for calls in ({"c": 1}, {}):
        first, second = Model(), Model()
        with ReplyFile(path) as file:
            ask(first, "a", "b", asker=Asker(replies=file))
            assert ask(second, "b", "a", "c", asker=Asker(replies=file)) == [
                Reply("B"),
                Reply("A"),
                Reply("C"),
            ]
        assert second.calls == calls
    assert first.calls == {}


def test_failures_are_asked_again_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path) as file:
        assert ask(Model(1), "a", asker=Asker(replies=file, retries=0))[0].text is None
    with ReplyFile(path) as file:
        assert ask(Model(), "a", asker=Asker(replies=file, retries=0)) == [Reply("A")]


def test_other_models_have_their_own_replies(tmp_path: Path) -> None:
    with ReplyFile(tmp_path / "replies.jsonl") as file:
        asker = Asker(replies=file)
        one, two = (language_model_of(Model(reply=text), name=text) for text in ("one", "two"))
        assert asker.ask(one, ["a"]) == [Reply("one")]
        assert asker.ask(two, ["a"]) == [Reply("two")]


def test_lone_surrogates_reach_no_client(tmp_path: Path) -> None:
    with ReplyFile(tmp_path / "replies.jsonl") as file:
        replies = ask(Model(), "a \ud800", asker=Asker(replies=file))
    assert replies == [Reply("A \ufffd")]


def test_prompts_are_not_all_held() -> None:
    taken = 0

    def prompts() -> Iterator[str]:
        nonlocal taken
        for taken in range(1, 1001):
            yield str(taken)

    seen: list[int] = []

    def look(prompt: str) -> str:
        seen.append(taken - int(prompt))
        return prompt

    replies = Asker(workers=2).ask(language_model_of(look), prompts())
    assert len(replies) == 1000
    assert max(seen) <= 8


def test_progress() -> None:
    done: list[int] = []
    ask(Model(), "a", "b", "a", "c", asker=Asker(progress=done.append))
    assert done == sorted(done)
    assert done[-1] == 4


def test_context_variables_reach_the_model() -> None:
    trace: ContextVar[str] = ContextVar("trace")
    trace.set("run 7")
    replies = Asker().ask(language_model_of(lambda prompt: trace.get(), name="traced"), ["a", "b"])
    assert replies == [Reply("run 7")] * 2


def test_an_error_in_the_prompts_ends_it_and_keeps_what_came(tmp_path: Path) -> None:
    def prompts() -> Iterator[str]:
        yield "a"
        raise OSError("the data file is gone")

    with ReplyFile(tmp_path / "replies.jsonl") as file:
        with pytest.raises(OSError, match="the data file is gone"):
            Asker(replies=file, workers=1).ask(language_model_of(Model(), name="m"), prompts())
        assert len(file) <= 1


def test_a_store_that_cannot_be_written_ends_it(tmp_path: Path) -> None:
    file = ReplyFile(tmp_path / "replies.jsonl")
    file.close()
    with pytest.raises(ValueError, match="closed file"):
        ask(Model(), "a", asker=Asker(replies=file))


def test_interrupt_keeps_replies_and_asks_no_more(tmp_path: Path) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return prompt

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with ReplyFile(tmp_path / "replies.jsonl") as file:
        with pytest.raises(KeyboardInterrupt):
            Asker(replies=file, workers=1, progress=interrupt).ask(
                language_model_of(model), map(str, range(1000))
            )
        assert len(file) == len(asked) < 1000


def test_killed_and_resumed(tmp_path: Path) -> None:
    path, log = tmp_path / "replies.jsonl", tmp_path / "asked"
    code = f"""
import os, sys
from pathlib import Path
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import language_model_of
from spscanner_rag.lab.llm.replies import ReplyFile

def model(prompt):
    with open({str(log)!r}, "a") as asked:
        asked.write(prompt + "\\n")
    if prompt == sys.argv[1]:
        os.kill(os.getpid(), 9)
    return "r" + prompt

with ReplyFile(Path({str(path)!r})) as file:
    replies = Asker(replies=file, workers=1).ask(language_model_of(model), map(str, range(40)))
print(",".join(reply.text for reply in replies))
"""

    def run(kill_at: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, kill_at], capture_output=True, text=True)

    assert run("25").returncode == -9
    with path.open("ab") as file:
        file.write(b'{"digest": "half a li')
    done = run("none")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ",".join(f"r{number}" for number in range(40))
    # only the one that was under way was asked again
    assert Counter(log.read_text().split()) == Counter(map(str, range(40))) + Counter(["25"])
    assert run("none").stdout == done.stdout
    assert len(log.read_text().split()) == 41


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2.0}, "workers"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"pause": -1.0}, "pause"),
        ({"pause": float("nan")}, "pause"),
    ],
)
def test_numbers_out_of_range(options: dict[str, object], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: got"):
        Asker(**options)  # type: ignore[arg-type]
