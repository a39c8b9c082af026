"""Runs that are killed, refused, out of money or out of room: nothing paid for is lost, and they go on."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.documents import Document as LangChainDocument

from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.lab.llm.asking import Asker, Budget, Prices
from spscanner_rag.lab.synthesis.conversation import read_prompts
from spscanner_rag.lab.synthesis.making import RunOptions, SynthesisRun
from spscanner_rag.lab.synthesis.outcomes import REPLIES, SUMMARY
from spscanner_rag.lab.synthesis.scripted import scripted_reply
from spscanner_rag.lab.synthesis.sources import framework_documents
from tests.lab.synthesis.conftest import SETTINGS, Make, story


class Scripted:
    """The scripted model; counts its calls, and may fail at some of them."""

    def __init__(self, fail: Callable[[int], BaseException | str | None] = lambda call: None) -> None:
        self.calls, self.fail, self._lock = 0, fail, threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            self.calls += 1
            failure = self.fail(self.calls)
        if isinstance(failure, BaseException):
            raise failure
        return scripted_reply(prompt) if failure is None else failure


def files_of(folder: Path) -> dict[str, bytes]:
    return {"train.jsonl": (folder / "train.jsonl").read_bytes()}


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Asker._wait
    monkeypatch.setattr(Asker, "_wait", lambda self, seconds: wait(self, 0))


@pytest.fixture
def whole(make: Make, tmp_path: Path) -> dict[str, bytes]:
    """The files of a run that nothing disturbs."""
    make(Scripted(), tmp_path / "whole")
    return files_of(tmp_path / "whole")


def test_the_files_do_not_depend_on_threads(make: Make, tmp_path: Path, whole: dict[str, bytes]) -> None:
    make(Scripted(), tmp_path / "other", workers=7)
    assert files_of(tmp_path / "other") == whole
    documents = list(read_documents([tmp_path / "other" / "train.jsonl"], distinct=True))
    assert len(documents) >= 10
    assert all(document.questions[0].evidence for document in documents)


def test_a_spent_budget_ends_the_run_and_a_larger_one_goes_on(
    make: Make, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    run = make(Scripted(), tmp_path / "costly", budget=Budget(prices=Prices(1, 10), max_cost=0.02))
    assert "limit of cost" in run.stopped
    assert 0.01 < run.budget.cost <= 0.02
    model, out = Scripted(), tmp_path / "out"
    for most in (7, 8, 20):
        run = make(model, out, budget=Budget(max_requests=most))
        assert "limit of" in run.stopped
        assert model.calls == most
        assert json.loads((out / SUMMARY).read_text())["stopped"] == run.stopped
    run = make(model, out)
    assert run.stopped == ""
    assert files_of(out) == whole
    assert model.calls == run.budget.requests == run.summary()["requests"]
    again = make(model, out)
    assert again.budget.requests == model.calls  # nothing was asked again
    assert files_of(out) == whole


def test_a_model_whose_every_reply_is_useless(make: Make, tmp_path: Path) -> None:
    model, reason = Scripted(lambda call: "%&/( 42"), "the reply lacks a part"
    run = make(model, tmp_path / "out")
    assert run.outcomes.examples == 0
    assert run.outcomes.reasons == {f"link_connections: {reason}": run.outcomes.done}
    assert model.calls == SETTINGS.tries * run.outcomes.done
    assert not (tmp_path / "out" / "train.jsonl").exists()
    assert run.summary()["malformed_replies"] == {reason: model.calls}


def test_a_question_in_another_language(make: Make, tmp_path: Path) -> None:
    pytest.importorskip("py3langid")

    def ask(prompt: str) -> str:
        if "[BEGIN CONNECTION" in prompt:
            return "QUESTION: Wer hat im Winter die Schachteln des Hauses gezählt und bemalt?"
        return scripted_reply(prompt)

    settings = replace(SETTINGS, language_probability=0.1)
    run = make(ask, tmp_path / "out", settings)
    assert run.outcomes.reasons["link_question: the question is in another language"] >= 10
    assert run.outcomes.examples == 0


@pytest.mark.usefixtures("no_pauses")
def test_a_provider_that_is_not_there(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spscanner_rag.lab.synthesis.making.MOST_FAILURES", 3)
    run = make(Scripted(lambda call: ConnectionError("refused")), tmp_path / "out")
    assert "3 sub-documents in a row got no reply: ConnectionError" in run.stopped
    assert run.outcomes.examples == 0
    assert make(Scripted(), tmp_path / "out").outcomes.examples >= 10


@pytest.mark.parametrize("ends", [(1,), (6, 30), (9, 24, 38)])
def test_an_interrupted_run_goes_on(
    make: Make, tmp_path: Path, whole: dict[str, bytes], ends: tuple[int, ...]
) -> None:
    model, out = Scripted(lambda call: KeyboardInterrupt() if call in ends else None), tmp_path / "out"
    for _ in ends:
        with pytest.raises(KeyboardInterrupt):
            make(model, out, workers=1)
        with (out / REPLIES).open("ab") as file:  # as a kill leaves it
            file.write(b'{"half": "a li')
    assert make(model, out).stopped == ""
    assert files_of(out) == whole
    replies = [json.loads(line) for line in (out / REPLIES).read_bytes().splitlines()]
    assert set(Counter(reply["digest"] for reply in replies).values()) == {1}, "no reply was asked for again"
    assert model.calls == len(replies) + len(ends)


def test_documents_of_a_framework_by_a_function(tmp_path: Path) -> None:
    documents = framework_documents(
        [LangChainDocument(story(number), id=f"d{number}") for number in range(3)]
    )
    with SynthesisRun(SETTINGS, RunOptions(sources=(), llm=scripted_reply), tmp_path) as run:
        run.run(documents=documents)
        assert run.write()["train.jsonl"] == run.outcomes.examples >= 2
    assert len(list(read_documents([tmp_path / "train.jsonl"]))) == run.outcomes.examples


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("link_question.txt", "Ask.\n===\nWrite.", "expected a first line 'version: NAME'"),
        ("link_question.txt", "version: 1\n\nAsk.", "a line ===, and a closing"),
        ("mine.txt", "version: 1\n\nAsk.\n===\nWrite.", "no prompt has this name"),
    ],
)
def test_prompts_that_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_prompts(tmp_path)
