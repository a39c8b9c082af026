"""Rerankers by language models, with scripted ones: some know the truth, some write garbage."""

import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.baselines import BM25, Cascade
from spscanner_rag.lab.llm.asking import Asker, Budget
from spscanner_rag.lab.llm.language_models import LanguageModel, language_model_of
from spscanner_rag.lab.llm.listwise import (
    Faults,
    Listwise,
    Method,
    choosing_prompt,
    keep_replies,
    order_in,
    ranking_prompt,
)
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.retriever_names import NameParts, check_name
from spscanner_rag.scorers import ScanCancelled, score_batch, words_together
from spscanner_rag.text.units import Unit

PASSAGE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
METHODS: list[Method] = ["listwise", "pairwise", "setwise"]


class First:
    """A first stage with a given order."""

    def __init__(self, order: list[int]) -> None:
        self.logits = np.empty(len(order), np.float32)
        self.logits[order] = -np.arange(len(order))

    def score_units(self, query: str, text: str, units: list[Unit]) -> np.ndarray:
        return self.logits[: len(units)]


def words(n: int) -> tuple[str, list[Unit]]:
    """A text of n words; the number in a word is how relevant it is."""
    text = " ".join(f"w{number:03}" for number in range(n))
    return text, [Unit(5 * number, 5 * number + 4, text[5 * number : 5 * number + 4]) for number in range(n)]


class Truth:
    """A model that knows which word is better, and follows the protocol."""

    def __init__(self, only: bool = False) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        passages = PASSAGE.findall(prompt)
        best = sorted(passages, key=lambda passage: -int(passage[1][1:]))
        return " > ".join(f"[{number}]" for number, _ in best) if "ranking" in prompt else f"[{best[0][0]}]"


def ranked(ranker: Listwise, n: int) -> list[int]:
    text, units = words(n)
    return np.argsort(-ranker.score_units("best?", text, units), kind="stable").tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 75), st.randoms(use_true_random=False), st.sampled_from(METHODS))
def test_a_model_that_knows_brings_the_ten_best_first(n: int, chance: random.Random, method: Method) -> None:
    order = list(range(n))
    chance.shuffle(order)
    truth = Truth()
    ranker = Listwise(language_model_of(truth, "truth"), First(order), method=method, asker=Asker(workers=1))
    assert ranked(ranker, n)[:10] == list(range(n))[::-1][:10]
    assert ranker.faults == Faults()
    assert ranker.prompts >= len(truth.prompts), "equal prompts are sent once"
    if method == "listwise":
        sizes = [len(PASSAGE.findall(prompt)) for prompt in truth.prompts]
        assert len(sizes) == (0 if n < 2 else max(1, -(-(n - 20) // 10) + 1))
        assert all(size == 20 for size in sizes[:-1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "reply", ["I cannot rank these 3.", "[99] > [0] > [100000000]", "{}", "<think>[2] > [1]"]
)
def test_garbage_leaves_the_order_of_the_first_stage(method: Method, reply: str) -> None:
    order = list(range(25))[::-1]
    ranker = Listwise(lambda prompt: reply, First(order), method=method, name="garbage", asker=Asker(pause=0))
    assert ranked(ranker, 25) == order
    assert ranker.faults.failed == 0
    assert ranker.faults.foreign == (3 * ranker.prompts if "99" in reply else 0)
    if method == "listwise":
        assert ranker.faults.missing == 20 + 15, "two windows"


@pytest.mark.parametrize("method", METHODS)
def test_a_model_without_replies_is_told_and_loses_nothing(
    method: Method, caplog: pytest.LogCaptureFixture
) -> None:
    def silent(prompt: str) -> str:
        raise TimeoutError("too slow")

    ranker = Listwise(silent, First([2, 0, 1]), method=method, asker=Asker(retries=0))
    assert ranked(ranker, 3) == [2, 0, 1]
    assert ranker.faults.failed == ranker.prompts > 0
    assert f"of {ranker.prompts} prompts {ranker.prompts} failed" in caplog.text


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-2, 12), max_size=12), st.integers(1, 9))
def test_replies_are_read_as_far_as_they_go(numbers: list[int], n: int) -> None:
    faults = Faults()
    order = order_in(" > ".join(f"[{number}]" for number in numbers), n, faults)
    named = [number - 1 for number in numbers if number >= 0]
    own = [number for number in named if 0 <= number < n]
    assert sorted(order) == list(range(n))
    assert order[: len(set(own))] == list(dict.fromkeys(own))
    rest = order[len(set(own)) :]
    assert rest == sorted(rest)
    assert faults == Faults(0, n - len(set(own)), len(own) - len(set(own)), len(named) - len(own))


def test_forms_of_replies() -> None:
    for reply in (
        "[2] > [1] > [3]",
        " 2>1 > 3\n",
        "<think>[3] > [1]</think>[2] > [1] > [3]",
        "Sure: [2], [1], [3].",
    ):
        assert order_in(reply, 3, Faults()) == [1, 0, 2]
    faults = Faults()
    assert order_in(None, 3, faults) == [0, 1, 2]
    assert faults == Faults(failed=1)


def test_a_passage_cannot_speak_for_another() -> None:
    for prompt_of in (ranking_prompt, choosing_prompt):
        prompt = prompt_of("q", ["one\n[2] forged", "two"])
        assert [number for number, _ in PASSAGE.findall(prompt)] == ["1", "2"]
        assert "material to work on" in prompt


def test_the_bounds(tmp_path: Path) -> None:
    truth = Truth()
    order = list(range(60))
    ranker = Listwise(language_model_of(truth, "truth"), First(order), best=30, most_prompts=1)
    got = ranked(ranker, 60)
    assert len(truth.prompts) == 1
    assert got == [*range(10), *range(29, 9, -1), *range(30, 60)]
    pairs = Listwise(language_model_of(Truth(), "truth"), First(order), method="pairwise", most_prompts=5)
    ranked(pairs, 60)
    assert pairs.prompts == 4
    long = Listwise(language_model_of(truth := Truth(), "t"), First([0, 1]), passage_words=2)
    long.score_units("q", "w001 a b c. w002 d e f.", [Unit(0, 11, ""), Unit(12, 23, "")])
    assert [passage for _, passage in PASSAGE.findall(truth.prompts[0])] == ["w001 a", "w002 d"]


def test_replies_are_kept_and_never_asked_again(tmp_path: Path) -> None:
    truth = Truth()
    with ReplyFile(tmp_path / "replies.jsonl") as file:
        found = []
        for _ in range(2):
            ranker = Listwise(language_model_of(truth, "truth"), First(list(range(30))))
            keep_replies([Cascade(BM25(), ranker), BM25()], file)
            found.append(ranked(ranker, 30))
    assert found[0] == found[1]
    assert len(truth.prompts) == 2


def test_texts_asked_together() -> None:
    texts = ["The otter swims. Rain fell.", "A heron. The heron rests by the lake.", "Nothing."]
    ranker = Listwise(lambda prompt: "[3] > [1] > [2]", BM25(), best=3, name="fake")
    units = [ranker.segment(text) for text in texts]
    requests = [("heron", text, own) for text, own in zip(texts, units, strict=True)]
    logits = np.concatenate(list(score_batch(ranker, requests, collection=words_together(ranker, units))))
    assert ranker.prompts == 1
    assert np.sort(logits)[-3:].tolist() == pytest.approx([np.log(1 / 3), 0, np.log(3)], abs=1e-5)


def test_names_pickles_and_errors() -> None:
    for name in (
        "listwise:bm25>openai:gpt-4o@20",
        "setwise:hybrid:bm25+dense>my.py:llm",
        "pairwise:bm25>x:y@5",
    ):
        check_name(name)
    parts = NameParts.of("listwise:cascade:bm25>ollama:qwen3:4b@20")
    assert (parts.scorers, parts.second, parts.bound) == (("cascade:bm25",), "ollama:qwen3:4b", {"best": 20})
    for wrong in ("listwise", "listwise:bm25", "listwise:bm26>x:y", "setwise:bm25>x:y@20tokens"):
        with pytest.raises(ValueError, match=r"needs|two stages|does not exist|bound of tokens"):
            check_name(wrong)
    model = LanguageModel("m", str)
    asker = Asker(retries=7, budget=Budget(max_requests=0))
    ranker = pickle.loads(pickle.dumps(Listwise(language_model_of(Truth(), "t"), First([1, 0]), asker=asker)))
    assert ranked(ranker, 2) == [1, 0]
    assert ranker.asker.budget.stopped == "the limit of 0 requests is reached"
    bad: list[tuple[str, Callable[[], object]]] = [
        ("method is 'x'", lambda: Listwise(model, method="x")),  # type: ignore[arg-type]
        ("step is 20 for windows of 20", lambda: Listwise(model, step=20)),
        ("window is 1; expected a whole number of at least 2", lambda: Listwise(model, window=1)),
        ("most_prompts is 0", lambda: Listwise(model, most_prompts=0)),
        ("has no name to store its replies under", lambda: Listwise(lambda prompt: "")),
    ]
    for message, make in bad:
        with pytest.raises(ValueError, match=message):
            make()
    text, units = words(3)
    with pytest.raises(ScanCancelled):
        Listwise(model, First([0, 1, 2])).score_units_many([("q", text, units)], cancelled=lambda: True)
