"""All four classes: selection, results, refusals, no side effects, waiting, copies."""

import asyncio
import contextvars
import copy
import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.baselines.remote_scanner import RemoteScanner
from spscanner_rag.retrieval.worker_threads import AT_ONCE
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer, UnitScores, never
from spscanner_rag.text.keep_scale import KeepScale
from tests.fakes import ScoredBy
from tests.integrations.hosts import (
    ALL,
    HARBOUR,
    ISLAND,
    Doc,
    EventLoop,
    Found,
    Host,
    Reader,
    Slow,
    Uncounted,
    WordScorer,
    all_four,
)
from tests.retrieval.searching import forget_shared_scanners

QUERY = "Who signed the treaty?"
TOKEN = "hf_a-secret-token"
DOCS = [
    Doc(HARBOUR, "h", {"tags": ["sea", "town"]}),
    Doc(ISLAND, "i", {"author": {"name": "A"}}),
]


def texts(found: list[Found]) -> list[str]:
    return [each.text for each in found]


def logits(found: list[Found]) -> dict[str, float]:
    return {each.id: each.logit for each in found}


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The models that are loaded, in a process that has not loaded any before."""
    forget_shared_scanners()
    loads: list[Any] = []
    original = Scanner.from_pretrained

    def counted(model: Any = None, **options: Any) -> Scanner:
        loads.append((model, options))
        return original(model, **options)

    monkeypatch.setattr(Scanner, "from_pretrained", counted)
    yield loads
    forget_shared_scanners()


@pytest.fixture
def options(tiny_checkpoint: Path) -> dict[str, Any]:
    return {"model": str(tiny_checkpoint), "device": "cpu", "dtype": "float32"}


# Results


@all_four
def test_scores_and_spans_are_those_of_the_scanner(
    host: Host, tiny_scanner: Scanner
) -> None:
    found = host.ask(DOCS, QUERY, scanner=tiny_scanner)
    results = tiny_scanner.scan_many([(QUERY, doc.text) for doc in DOCS], together=True)
    expected = {
        f"{doc.id}:{s.start}-{s.end}": s.logit
        for doc, r in zip(DOCS, results, strict=True)
        for s in r.sentences
    }
    assert logits(found) == pytest.approx(expected, abs=1e-4)
    whole = {doc.id: doc.text for doc in DOCS}
    for each in found:
        assert whole[each.id.split(":")[0]][slice(*each.span)] == each.text
        assert each.metadata["spscanner_id"] == each.id
        assert each.score == pytest.approx(1 / (1 + np.exp(-each.logit)))
        assert each.retrieval_score is None
    best = {name: max(e.score for e in found if e.id[0] == name) for name in "hi"}
    assert all(each.document_score == best[each.id[0]] for each in found)
    assert [e.logit for e in found] == sorted((e.logit for e in found), reverse=True)


@all_four
@pytest.mark.parametrize("mode", ["sentence", "node", "pruned"])
def test_metadata_are_kept_and_copied_and_no_input_changes(
    host: Host, mode: str
) -> None:
    given = host.given([*DOCS, *DOCS[:1]])
    before = copy.deepcopy([document.__dict__ for document in given])
    for order, merge, keep, context, budget in product(
        ("score", "document"), (False, True), (False, True), (0, 2), (None, 40)
    ):
        made = host.of(
            DOCS,
            scorer=WordScorer(),
            order=order,
            merge_adjacent=merge,
            keep_retrieval_score=keep,
            k=3,
            context_sentences=context,
            max_tokens=budget,
            k_per_document=2,
            return_nodes=mode,
        )
        results = host.call(made, QUERY, given)
        for each in map(host.found, results):
            source = next(doc for doc in DOCS if doc.id == each.id.split(":")[0])
            assert source.metadata.items() <= each.metadata.items()
            if mode != "node":
                each.metadata.get("tags", []).append("changed")
                each.metadata.clear()
        assert results
        assert [document.__dict__ for document in given] == before
    assert DOCS[0].metadata == {"tags": ["sea", "town"]}


@all_four
def test_metadata_that_cannot_be_copied_deeply_are_copied_flat(host: Host) -> None:
    module = sys.modules[__name__]
    (found,) = host.ask(
        [Doc("A treaty.", "a", {"handle": module})], QUERY, scorer=WordScorer()
    )
    assert found.metadata["handle"] is module


@all_four
def test_ids_are_the_same_every_time_and_differ(host: Host) -> None:
    docs = [
        *DOCS,
        Doc("A treaty.", None, {"n": 1}),
        Doc("A treaty. Rain. A treaty.", None, {"n": 2}),
    ]
    first, second = (host.ask(docs, QUERY, scorer=WordScorer()) for _ in range(2))
    assert texts(first) == texts(second)
    assert [e.id for e in first] == [e.id for e in second]
    assert (
        len({e.id for e in first}) == len(first) == 14
    )  # equal sentences of two documents are two


@all_four
@pytest.mark.parametrize("top_k", [1, 3, 1000])
def test_limits(host: Host, top_k: int) -> None:
    def ask(**options: Any) -> list[Found]:
        return host.ask(DOCS, QUERY, scorer=WordScorer(), **options)

    every = ask(k=None)
    assert len(every) == 10
    assert ask(k=top_k) == every[:top_k]
    assert ask(k="elbow") == every[:2]
    assert sorted(each.id[0] for each in ask(k_per_document=1)) == ["h", "i"]
    assert ask(threshold=every[top_k % 7].score) == every[: top_k % 7 + 1]  # inclusive
    assert ask(threshold=1.0) == []
    for budget in (1, 12, 30):
        assert (
            sum(len(text.split()) for text in texts(ask(max_tokens=budget))) <= budget
        )
        assert sum(map(len, texts(ask(max_tokens=budget, count_tokens=len)))) <= budget


TEMPLATES = [
    (lambda found: f"{found.text}\n", "{context}\nQuestion: {question}"),
    (
        lambda found: f"[{found.metadata['path']}, page 3] {found.text}",
        "Be short.\n\n{context}\n{question}",
    ),
]


@all_four
@pytest.mark.parametrize("mode", ["sentence", "pruned"])
@pytest.mark.parametrize("written", TEMPLATES)
def test_a_budget_holds_for_the_whole_prompt(
    host: Host, mode: str, written: Any
) -> None:
    shown, template = written
    docs = [Doc(doc.text, doc.id, {"path": "reports/of the year.pdf"}) for doc in DOCS]

    def prompt(question: str, results: list[Any]) -> str:
        context = "".join(shown(host.found(result)) for result in results)
        return template.format(context=context, question=question)

    def ask(**options: Any) -> list[Any]:
        made = host.of(
            docs,
            scorer=WordScorer(),
            count_tokens=len,
            return_nodes=mode,
            prompt=prompt,
            **options,
        )
        return list(host.call(made, QUERY, host.given(docs)))

    every, least = ask(), len(prompt(QUERY, []))
    for budget in (least, least + 200, least + 500, 5000):
        found = ask(max_tokens=budget)
        assert len(prompt(QUERY, found)) <= budget
        assert len(prompt(QUERY, found)) >= least + (budget - least) / 3 or len(
            found
        ) == len(every)
    with pytest.raises(
        ValueError,
        match=f"max_tokens: got {least - 1}, but the prompt has {least} without",
    ):
        ask(max_tokens=least - 1)


class Sure(WordScorer):
    """Gives the probability that a text answers."""

    says_answers = True

    def score_units_many(
        self, requests: Any, *, collection: Any = None, cancelled: Any = never
    ) -> list[UnitScores]:
        logits = [self.score_units(*request) for request in requests]
        return [UnitScores(own, 0.9 if max(own) > 0 else 0.2) for own in logits]


@all_four
@pytest.mark.parametrize("mode", ["sentence", "node", "pruned"])
def test_documents_that_hardly_answer_are_left_out_on_request(
    host: Host, mode: str
) -> None:
    scorer = Sure()
    docs = [*DOCS, Doc("Rain fell. It was cold.", "r")]

    def ask(**options: Any) -> list[Found]:
        return host.ask(
            docs, QUERY, scorer=scorer, k=None, return_nodes=mode, **options
        )

    said = {each.id[0]: each.answerable for each in ask()}
    assert said["r"] == 0.2
    assert 0.9 in said.values()
    assert {each.id[0] for each in ask(require_answer=0.5)} == {
        name for name, p in said.items() if p == 0.9
    }
    assert ask(require_answer=1.0) == []
    with pytest.raises(ValueError, match=r"require_answer.*WordScorer.*threshold"):
        host.ask(docs, QUERY, scorer=WordScorer(), require_answer=0.5)


SCALE = KeepScale(
    logit=0.5, best=-0.3, answerable=0.5, bias=0.2, strict=0.8, generous=0.1
)


class Scaled(Sure):
    """Has scores to cut at."""

    keep_scale = SCALE


@all_four
def test_scores_are_those_to_cut_at_where_the_scorer_has_them(host: Host) -> None:
    found = host.ask(DOCS, QUERY, scorer=Scaled(), k=None)
    logits = np.array([each.logit for each in found], np.float32)
    said = max(each.answerable for each in found)
    assert [each.score for each in found] == pytest.approx(SCALE.scores(logits, said))
    best = max(each.score for each in found)
    assert max(each.document_score for each in found) == pytest.approx(best)
    plain = host.ask(DOCS, QUERY, scorer=Sure(), k=None)
    assert texts(plain) == texts(found)
    assert [each.score for each in plain] != [each.score for each in found]


@all_four
def test_a_threshold_and_presets_cut_at_the_scores_that_are_shown(host: Host) -> None:
    def ask(**options: Any) -> list[Found]:
        return host.ask(DOCS, QUERY, scorer=Scaled(), k=None, **options)

    everything = ask()
    third = everything[2].score
    assert texts(ask(threshold=third)) == texts(everything[:3])
    for keep in ("strict", "balanced", "generous"):
        least = SCALE.least(keep)
        expected = [each.text for each in everything if each.score >= least]
        assert texts(ask(keep=keep)) == expected
    with pytest.raises(ValueError, match=r"keep.*WordScorer.*spscanner\.keep"):
        host.ask(DOCS, QUERY, scorer=WordScorer(), keep="balanced")
    with pytest.raises(ValueError, match=r"keep"):
        ask(keep="loose")


@all_four
def test_order_neighbours_and_merging(host: Host) -> None:
    whole = ask = "Who signed the treaty on the island?"
    options: dict[str, Any] = {
        "scorer": WordScorer(),
        "k": 1,
        "context_sentences": 1,
        "order": "document",
    }
    apart = host.ask(DOCS, ask, **options)
    whole = (
        "Its well was dry for years. Captain Moore signed the treaty on the island. The"
        " winter was long."
    )
    assert " ".join(texts(apart)) == whole
    (merged,) = host.ask(DOCS, ask, **options, merge_adjacent=True)
    assert merged.text == whole == ISLAND[slice(*merged.span)]
    assert merged.score == max(each.score for each in apart)


@all_four
def test_the_default_is_fifty_best_first(host: Host) -> None:
    docs = [Doc("One ship. " * 40, "a"), Doc("A treaty. " * 40, "b")]
    found = texts(host.ask(docs, "treaty", scorer=WordScorer()))
    assert found == ["A treaty."] * 40 + ["One ship."] * 10


@all_four
def test_sentences_that_repeat_better_ones_are_passed_over(host: Host) -> None:
    text = (
        "Otters swim in the lake. The otter swims in lakes. Herons stand still. It"
        " rained."
    )
    found = host.ask([Doc(text, "a")], "x", scorer=Uncounted(), k=2, diversity=0.5)
    assert set(texts(found)) == {"Otters swim in the lake.", "Herons stand still."}


# Whole and pruned documents


@all_four
def test_documents_instead_of_sentences(host: Host) -> None:
    def ask(mode: str, **options: Any) -> list[Found]:
        return host.ask(DOCS, QUERY, scorer=WordScorer(), return_nodes=mode, **options)

    sentences, nodes, pruned = (
        ask(mode, k=3) for mode in ("sentence", "node", "pruned")
    )
    best = {each.id[0]: each for each in reversed(sentences)}
    for found in (nodes, pruned):
        assert [each.id for each in found] == list(
            dict.fromkeys(each.id[0] for each in sentences)
        )
        assert [each.logit for each in found] == [best[each.id].logit for each in found]
    whole = {doc.id: doc.text for doc in DOCS}
    assert texts(nodes) == [whole[each.id] for each in nodes]
    for each in pruned:
        own = [s for s in sorted(sentences, key=lambda s: s.span) if s.id[0] == each.id]
        assert [line.split() for line in each.text.split("\n")] == [
            s.text.split() for s in own
        ] or (each.text in whole[each.id])
        assert sorted(each.text.split()) == sorted(
            " ".join(s.text for s in own).split()
        )
        saved = 1 - len(each.text) / len(whole[each.id])
        assert each.metadata["spscanner_character_reduction"] == pytest.approx(saved)
        saved = 1 - len(each.text.split()) / len(whole[each.id].split())
        assert each.metadata["spscanner_token_reduction"] == pytest.approx(saved)
    assert (
        len(ask("node", threshold=sentences[0].score)) == 1
    )  # sentences are selected first
    in_order = ask(
        "node", k=None, order="document", merge_adjacent=True, context_sentences=1
    )
    assert [each.id for each in in_order] == ["h", "i"]
    assert {e.text for e in ask("pruned", k=None)} == {HARBOUR, ISLAND}
    (uncounted,) = host.ask(
        DOCS[:1], QUERY, scorer=Uncounted(), k=1, return_nodes="pruned"
    )
    assert "spscanner_token_reduction" not in uncounted.metadata


# Refusals


@all_four
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("k", value) for value in (0, -3, 1.5, True, "3", "knee", "elbow:9-3")),
        *(
            ("k_per_document", 0),
            ("threshold", 1.5),
            ("threshold", float("nan")),
            ("require_answer", 2),
            ("max_tokens", 0),
            ("prompt", "{context}"),
        ),
        *(
            ("count_tokens", "no_such"),
            ("count_tokens", 3),
            ("context_sentences", -1),
            ("order", "best"),
        ),
        *(
            ("merge_adjacent", "yes"),
            ("diversity", 2),
            ("batch_size", 0),
            ("return_nodes", "nodes"),
        ),
        ("no_such_field", 3),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(
    host: Host, name: str, value: object
) -> None:
    with pytest.raises((ValueError, TypeError), match=host.names.get(name, name)):
        host.of(DOCS, **{name: value})


@all_four
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device is 'gpu'; expected 'auto', 'cpu'"),
        ({"dtype": "float64"}, "dtype is 'float64'; expected 'auto'"),
        ({"backend": "triton"}, "backend is 'triton'; expected 'auto'"),
        ({"model": "/no/such/folder"}, "/no/such/folder: no such folder"),
        (
            {"model": "my-scanner"},
            "my-scanner: no such folder; expected the folder of a checkpoint, or a Hub",
        ),
        ({"model": "a", "scorer": Uncounted()}, "got model and scorer"),
        (
            {"scorer": object()},
            "scorer is object; expected a scorer: subclass"
            " spscanner_rag.scorers.Scorer",
        ),
        (
            {"scorer": Uncounted(), "max_tokens": 9},
            "got 9, but Uncounted counts no tokens",
        ),
        ({"model_kwargs": {"windows": 3}}, "unexpected keyword argument 'windows'"),
        (
            {"model_kwargs": {"device": "cpu"}},
            "multiple values for keyword argument 'device'",
        ),
    ],
)
def test_what_cannot_score_is_refused_early(
    host: Host, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        host.of([], **options)  # without a text nothing is loaded


@all_four
@pytest.mark.parametrize("query", ["", "  \n", None])
def test_no_query_is_refused_before_any_work(host: Host, query: Any) -> None:
    made = host.of(DOCS, model="no/such-model")
    with pytest.raises(
        (ValueError, TypeError), match=r"expected a question|a string|valid string"
    ):
        host.call(made, query, host.given(DOCS))
    with pytest.raises(
        (ValueError, TypeError), match=r"expected a question|a string|valid string"
    ):
        asyncio.run(host.acall(made, query, host.given(DOCS)))


@all_four
def test_errors_of_the_scorer_reach_the_caller(host: Host) -> None:
    broken = ScoredBy(lambda query, text, units: [0.0] * (len(units) + 1))
    with pytest.raises(ValueError, match=r"ScoredBy\S* returned shape"):
        host.ask(DOCS, QUERY, scorer=broken)


@all_four
def test_a_token_is_nowhere_to_be_seen(
    host: Host,
    options: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(0)
    given = {"token": TOKEN, "local_files_only": True}
    made = host.of(DOCS, model_kwargs=given, **options)
    host.call(made, QUERY, host.given(DOCS))
    assert given["token"] == TOKEN
    seen = [
        repr(made),
        str(made),
        str(vars(made)),
        str(pickle.dumps(made)),
        repr(copy.deepcopy(made)),
    ]
    pydantic = hasattr(made, "model_dump")
    if pydantic:
        seen += [str(made.model_dump()), str(made.model_copy())]
    for wrong in (
        {"k": 0},
        {"batch_size": 0},
        {"no_such_field": 1},
        {"model": str(tmp_path / "absent")},
        {"model_kwargs": {"token": TOKEN, "windows": 1}},
        *(
            [{"model_kwargs": [("token", TOKEN)]}, {"model_kwargs": TOKEN}]
            if pydantic
            else []
        ),
    ):
        with pytest.raises((ValueError, TypeError)) as refused:
            host.of(DOCS, **{"model_kwargs": given, **wrong})
        seen += all_that_is_said(refused.value)
    assert not [text for text in [*seen, caplog.text] if TOKEN in text]


def all_that_is_said(error: BaseException | None) -> list[str]:
    """The text of an error and of its causes, and the input that pydantic keeps."""
    if error is None:
        return []
    said = [str(error), repr(error)]
    if hasattr(error, "errors"):
        said += [str(error.errors()), error.json()]
    return (
        said + all_that_is_said(error.__cause__) + all_that_is_said(error.__context__)
    )


# Odd input


@all_four
@pytest.mark.parametrize("docs", [[], [""], ["", " \n", "\t"]])
def test_nothing_to_read_loads_no_model(host: Host, docs: list[str]) -> None:
    for mode in ("sentence", "node", "pruned"):
        assert (
            host.ask(
                [Doc(t) for t in docs], QUERY, model="no/such-model", return_nodes=mode
            )
            == []
        )


@all_four
@pytest.mark.parametrize(
    "docs",
    [
        ["", "It is a snake.", "", " ", "Soup."],
        ["The viper sleeps"],
        ["7"],
        [
            "The viper \ud800 sleeps.",
            "\ud800",
            "\x00 \u202e snake.",
            "\x1b[31m x" + "\u0301" * 300,
        ],
    ],
)
def test_odd_documents(host: Host, docs: list[str], tiny_scanner: Scanner) -> None:
    found = texts(host.ask([Doc(text) for text in docs], QUERY, scanner=tiny_scanner))
    assert sorted(found) == sorted(text for text in docs if text.strip())


# Models, copies and pickles


@pytest.mark.parametrize(
    ("module", "framework", "extra"),
    [("llama_index.postprocessor.spscanner", "llama_index.core", "llama-index"),
     ("llama_index.retrievers.spscanner", "llama_index.core", "llama-index"),
     ("langchain_spscanner", "langchain_core", "langchain")],
)  # fmt: skip
def test_without_the_framework_the_extra_is_named(
    module: str, framework: str, extra: str
) -> None:
    code = f"import sys; sys.modules[{framework!r}] = None; import {module}"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert f'pip install ".[{extra}]"' in run.stderr


@all_four
def test_the_model_loads_once_also_in_copies(
    host: Host, options: dict[str, Any], loads: list[Any]
) -> None:
    made = host.of(DOCS, k=3, **options)
    data = pickle.dumps(made)
    assert len(data) < 20_000  # no model, and no texts made from the documents
    others = [
        host.of(DOCS, k=3, **options),
        copy.deepcopy(made),
        copy.copy(made),
        pickle.loads(data),
    ]
    assert loads == []
    with ThreadPoolExecutor(5) as threads:
        answers = list(
            threads.map(
                lambda own: host.call(own, QUERY, host.given(DOCS)), [made, *others]
            )
        )
    assert all(answer == answers[0] for answer in answers)
    assert len(loads) == 1


@all_four
def test_copies_share_a_scanner_and_pickles_find_the_same(
    host: Host, tiny_scanner: Scanner
) -> None:
    made, scorer = host.of(DOCS, scanner=tiny_scanner), WordScorer()
    expected = host.call(made, QUERY, host.given(DOCS))
    assert (
        host.call(pickle.loads(pickle.dumps(made)), QUERY, host.given(DOCS)) == expected
    )
    host.call(copy.deepcopy(host.of(DOCS, scorer=scorer)), QUERY, host.given(DOCS))
    assert scorer.calls == 2  # the scorer itself, not a copy


@all_four
def test_a_token_reaches_the_hub(
    host: Host, monkeypatch: pytest.MonkeyPatch, tiny_scanner: Scanner, loads: list[Any]
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        Scanner,
        "from_pretrained",
        lambda model, **own: given.append(own.get("token")) or tiny_scanner,
    )
    made = host.of(DOCS, model="some/model", model_kwargs={"token": TOKEN})
    host.call(copy.deepcopy(made), QUERY, host.given(DOCS))
    assert given == [TOKEN]


# Waiting


@all_four
def test_64_at_once_block_nothing_load_once_and_agree_with_one_by_one(
    host: Host,
    options: dict[str, Any],
    loads: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, free = EventLoop(), []
    load = Scanner.from_pretrained

    def slow(*arguments: Any, **own: Any) -> Scanner:
        free.append(
            all(loop.runs() for _ in range(20))
        )  # so that the others ask for it meanwhile
        return load(*arguments, **own)

    monkeypatch.setattr(Scanner, "from_pretrained", slow)
    made, given = host.of(DOCS, k=5, **options), host.given(DOCS)
    queries = [f"Who signed the treaty in {1700 + number}?" for number in range(64)]

    async def at_once() -> Any:
        return await loop.beside(
            asyncio.gather(*(host.acall(made, query, given) for query in queries))
        )

    answers = asyncio.run(at_once())
    assert (len(loads), free) == (1, [True])
    for query, answer in zip(queries[::7], answers[::7], strict=True):
        alone = [host.found(result) for result in host.call(made, query, given)]
        assert logits([host.found(result) for result in answer]) == pytest.approx(
            logits(alone), abs=1e-4
        )


@all_four
@pytest.mark.parametrize(
    "own",
    [{}, {"k": 3, "order": "document", "merge_adjacent": True}, {"threshold": 0.5}],
)
def test_async_gives_what_sync_gives_in_a_thread_of_its_own(
    host: Host, own: dict[str, Any]
) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar(
        "variable", default="unset"
    )
    seen: list[tuple[str, str]] = []

    class Noting(WordScorer):
        def score_units(self, query: str, text: str, units: Any) -> Any:
            seen.append(
                (threading.current_thread().name.partition("_")[0], variable.get())
            )
            return super().score_units(query, text, units)

    made, given = host.of(DOCS, scorer=Noting(), **own), host.given(DOCS)

    async def run() -> Any:
        variable.set("set")
        return await host.acall(made, QUERY, given)

    answer = asyncio.run(run())
    assert set(seen) == {("spscanner", "set")}
    assert answer == host.call(made, QUERY, given)


@all_four
@pytest.mark.parametrize("how", ["cancel", "time limit"])
def test_cancelling_the_task_ends_the_scan(
    host: Host, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(30)
    scorer = Slow()
    made, given = host.of(DOCS, scorer=scorer), host.given(DOCS)

    async def run() -> None:
        scans = [
            asyncio.ensure_future(host.acall(made, QUERY, given))
            for _ in range(AT_ONCE + 8)
        ]
        await asyncio.sleep(0)
        while not scorer.began.is_set():
            await asyncio.sleep(0.001)
        begun = time.perf_counter()
        await asyncio.to_thread(
            lambda: None
        )  # in a shared pool it would wait behind the scans
        assert time.perf_counter() - begun < 1
        for scan in scans[1:]:
            scan.cancel()
        if how == "cancel":
            scans[0].cancel()
            await scans[0]
        async with asyncio.timeout(0.05):
            await scans[0]

    with pytest.raises(asyncio.CancelledError if how == "cancel" else TimeoutError):
        asyncio.run(run())
    assert scorer.ended.wait(10)
    assert scorer.cancelled
    assert caplog.text == ""
    scorer.rounds = 0
    assert len(asyncio.run(host.acall(made, QUERY, given))) == 10  # not affected


@all_four
def test_calls_that_wait_for_a_server_wait_together(host: Host) -> None:
    calls = AT_ONCE + 4

    class Waiting(Scorer):
        calls_at_once = calls

        def __init__(self) -> None:
            self.together = threading.Barrier(calls)

        def score_units(self, query: str, text: str, units: Any) -> Any:
            self.together.wait(60)
            return np.arange(len(units), dtype=np.float32)

    made, given = host.of(DOCS[:1], scorer=Waiting()), host.given(DOCS[:1])

    async def all_at_once() -> Any:
        return await asyncio.gather(
            *(host.acall(made, QUERY, given) for _ in range(calls))
        )

    assert all(len(answer) == 5 for answer in asyncio.run(all_at_once()))
    assert RemoteScanner.calls_at_once > AT_ONCE


@all_four
def test_statistics_are_those_of_all_texts(host: Host) -> None:
    reader = Reader()
    host.ask(DOCS, QUERY, scorer=reader, batch_size=1)
    assert (reader.read, reader.units_of_collection) == ([HARBOUR, ISLAND], [10, 10])


@pytest.mark.parametrize("host", ALL[2:])
def test_results_can_be_given_again(host: Host) -> None:
    first = host.call(host.of([], scorer=WordScorer(), k=6), QUERY, host.given(DOCS))
    again = host.call(host.of([], scorer=WordScorer(), k=3), QUERY, first)
    places = [
        [(each.text, each.span) for each in map(host.found, found)]
        for found in (first, again)
    ]
    assert places[0][:3] == places[1]
