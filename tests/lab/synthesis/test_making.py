"""Runs that are killed, refused or out of money lose nothing, and resume."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.documents import Document as LangChainDocument

from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget, Prices
from spscanner_lab.synthesis.making import synthesize
from spscanner_lab.synthesis.run_folder import REPLIES, SUMMARY
from spscanner_lab.synthesis.scripted import scripted_reply
from spscanner_lab.synthesis.sources import framework_documents
from spscanner_rag.system.folder_lock import FolderInUseError, folder_lock
from spscanner_rag.system.run_inputs import OtherRunError
from tests.lab.synthesis.conftest import SETTINGS, Make, story


class Scripted:
    """The scripted model; counts its calls, and may fail at some of them."""

    def __init__(
        self, fail: Callable[[int], BaseException | str | None] = lambda call: None
    ) -> None:
        self.calls, self.fail, self._lock = 0, fail, threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            self.calls += 1
            failure = self.fail(self.calls)
        if isinstance(failure, BaseException):
            raise failure
        return scripted_reply(prompt) if failure is None else failure


@pytest.fixture
def whole(make: Make, tmp_path: Path) -> bytes:
    """The training file of an undisturbed run."""
    make(Scripted(), tmp_path / "whole")
    return (tmp_path / "whole" / "train.jsonl").read_bytes()


def test_the_files_do_not_depend_on_threads(
    make: Make, tmp_path: Path, whole: bytes
) -> None:
    make(Scripted(), workers=7)
    made = tmp_path / "out" / "train.jsonl"
    assert made.read_bytes() == whole
    documents = list(read_documents([made], distinct=True))
    assert len(documents) >= 10
    assert all(document.questions[0].evidence for document in documents)
    assert {path.name for path in made.parent.iterdir()} == {
        "replies.jsonl", "settings.json", "summary.json", "train.jsonl"
    }  # fmt: skip


def test_a_spent_budget_ends_the_run_and_a_larger_one_goes_on(
    make: Make, tmp_path: Path, whole: bytes
) -> None:
    summary = make(
        Scripted(),
        tmp_path / "costly",
        budget=Budget(prices=Prices(1, 10), max_cost=0.02),
    )
    assert "limit of cost" in summary["stopped"]
    assert 0.01 < summary["cost"] <= 0.02
    model, out = Scripted(), tmp_path / "out"
    for most in (7, 8, 20):
        summary = make(model, budget=Budget(max_requests=most))
        assert "limit of" in summary["stopped"]
        assert model.calls == most
        assert json.loads((out / SUMMARY).read_text()) == summary
    for _ in range(2):  # nothing is asked the second time
        summary = make(model)
        assert summary["stopped"] == ""
        assert (out / "train.jsonl").read_bytes() == whole
        assert model.calls == summary["requests"]


def test_a_model_whose_every_reply_is_useless(make: Make, tmp_path: Path) -> None:
    make(Scripted())  # its files are removed
    model, reason = Scripted(lambda call: "%&/( 42"), "the reply lacks a part"
    (tmp_path / "out" / REPLIES).unlink()
    summary = make(model)
    assert summary["dropped"] == {
        f"link_connections: {reason}": summary["sub_documents"]
    }
    assert model.calls == SETTINGS.tries * summary["sub_documents"]
    assert not (tmp_path / "out" / "train.jsonl").exists()
    assert summary["malformed_replies"] == {reason: model.calls}


def test_a_question_in_another_language(make: Make) -> None:
    pytest.importorskip("py3langid")

    def ask(prompt: str) -> str:
        if "[BEGIN CONNECTION" in prompt:
            return (
                "QUESTION: Wer hat im Winter die Schachteln des Hauses gezählt und"
                " bemalt?"
            )
        return scripted_reply(prompt)

    summary = make(ask, settings=replace(SETTINGS, language_probability=0.1))
    assert (
        summary["dropped"]["link_question: the question is in another language"] >= 10
    )
    assert summary["examples"] == 0


def test_a_provider_that_is_not_there(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Asker._wait
    monkeypatch.setattr(Asker, "_wait", lambda self, seconds: wait(self, 0))
    monkeypatch.setattr("spscanner_lab.synthesis.outcomes.MOST_FAILURES", 3)
    summary = make(Scripted(lambda call: ConnectionError("refused")))
    assert (
        "3 sub-documents in a row got no reply: ConnectionError" in summary["stopped"]
    )
    assert summary["examples"] == 0
    assert make(Scripted())["examples"] >= 10


@pytest.mark.parametrize("ends", [(1,), (9, 24, 38)])
def test_an_interrupted_run_goes_on(
    make: Make, tmp_path: Path, whole: bytes, ends: tuple[int, ...]
) -> None:
    model, out = (
        Scripted(lambda call: KeyboardInterrupt() if call in ends else None),
        tmp_path / "out",
    )
    for _ in ends:
        with pytest.raises(KeyboardInterrupt):
            make(model, workers=1)
        with (out / REPLIES).open("ab") as file:  # as a kill leaves it
            file.write(b'{"half": "a li')
    assert make(model)["stopped"] == ""
    assert (out / "train.jsonl").read_bytes() == whole
    replies = [json.loads(line) for line in (out / REPLIES).read_bytes().splitlines()]
    assert set(Counter(reply["digest"] for reply in replies).values()) == {1}, (
        "no reply was asked for again"
    )
    assert model.calls == len(replies) + len(ends)


def test_a_folder_of_another_run_or_in_use_is_refused(
    make: Make, tmp_path: Path
) -> None:
    make(scripted_reply)
    with pytest.raises(OtherRunError, match="seed: 0, now 1"):
        make(scripted_reply, settings=replace(SETTINGS, seed=1))
    with folder_lock(tmp_path / "out"), pytest.raises(FolderInUseError):
        make(scripted_reply)


def test_documents_of_a_framework_by_a_function(tmp_path: Path) -> None:
    documents = [
        LangChainDocument(story(number), id=f"d{number}") for number in range(3)
    ]
    own = framework_documents(documents)
    summary = synthesize(SETTINGS, tmp_path, llm=scripted_reply, documents=own)
    made = list(read_documents([tmp_path / "train.jsonl"]))
    assert summary["files"]["train.jsonl"] == summary["examples"] == len(made) >= 2
