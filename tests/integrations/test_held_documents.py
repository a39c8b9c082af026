"""Both retrievers: the documents they hold and read, changes, folders."""

import copy
import json
import pickle
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.corpus_folder import write_corpus
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import UnitScores
from tests.integrations.hosts import (
    HOLDING,
    Doc,
    Found,
    LangChainRetrieverHost,
    LlamaIndexRetrieverHost,
    Reader,
    Uncounted,
    both_retrievers,
)

Holding = LangChainRetrieverHost | LlamaIndexRetrieverHost

OLD_FOLDERS = Path(__file__).resolve().parents[1] / "data" / "corpora"
QUERY = "Was the well of house 17 dry?"
NOTES = [
    Doc(
        f"Note {n}. The well of house {n} was dry.", str(n), {"n": n, "even": 1 - n % 2}
    )
    for n in range(30)
]


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are counted."""
    keys: list[str] = []
    add = CollectionIndex.add

    def noted(index: CollectionIndex, key: str, texts: Sequence[str]) -> None:
        keys.append(key)
        add(index, key, texts)

    monkeypatch.setattr(CollectionIndex, "add", noted)
    return keys


def numbers(found: Sequence[Found]) -> set[int]:
    return {each.metadata["n"] for each in found}


def asked(host: Holding, made: Any, query: str = QUERY) -> list[Found]:
    return [host.found(result) for result in host.call(made, query, ())]


# Which documents are read


@both_retrievers
def test_the_ten_best_are_read_by_default(host: Holding, reader: Reader) -> None:
    found = host.ask(NOTES, QUERY, scorer=reader)
    assert len(reader.read) == 10
    assert "17" in found[0].text
    assert reader.units_of_collection == [
        60
    ]  # the statistics are those of all documents


@both_retrievers
def test_all_are_read_within_the_bounds_or_without_a_first_stage(
    host: Holding, reader: Reader
) -> None:
    for options in (
        {"first_stage": "none"},
        {"read_documents": 30},
        {"read_documents": None},
    ):
        assert numbers(host.ask(NOTES, QUERY, scorer=reader, k=None, **options)) == set(
            range(30)
        )
    assert reader.read == [note.text for note in NOTES] * 3
    assert (
        len(numbers(host.ask(NOTES, "house 3", scorer=reader, k=None, read_tokens=25)))
        == 2
    )


@both_retrievers
def test_scores_are_the_same_whatever_is_read(
    host: Holding, tiny_scanner: Scanner
) -> None:
    docs = [*NOTES[:3], Doc("A treaty on wells. It was dry.", "w", {"n": -1})]

    def logits(**options: Any) -> dict[str, float]:
        return {
            e.id: e.logit
            for e in host.ask(docs, QUERY, scanner=tiny_scanner, k=None, **options)
        }

    every = logits(first_stage="none")
    for options in ({"read_documents": 1}, {"read_documents": 2}, host.only(n=-1)):
        some = logits(**options)
        assert 0 < len(some) < len(every) == 8
        assert some == pytest.approx({name: every[name] for name in some}, abs=1e-4)


@both_retrievers
@pytest.mark.parametrize("first_stage", ["bm25", "none", "found"])
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"even": 1}, set(range(0, 30, 2))),
        ({"even": 1, "n": 4}, {4}),
        ({"n": 99}, set()),
    ],
)
def test_filters_come_before_reading(
    host: Holding,
    reader: Reader,
    first_stage: str,
    only: dict[str, Any],
    expected: set[int],
) -> None:
    stage = (
        host.first_stage(lambda query: host.given(NOTES))
        if first_stage == "found"
        else first_stage
    )
    options: dict[str, Any] = {
        "k": None,
        "read_documents": None,
        "first_stage": stage,
        **host.only(**only),
    }
    assert numbers(host.ask(NOTES, QUERY, scorer=reader, **options)) == expected
    assert len(reader.read) == len(expected)


@both_retrievers
def test_what_is_no_filter_is_refused(host: Holding) -> None:
    (name,) = host.only(n=1)
    with pytest.raises(TypeError, match=name):
        host.of(NOTES, scorer=Uncounted(), **{name: [1]})


@pytest.mark.slow
@both_retrievers
def test_what_no_document_says_is_not_guessed(host: Holding, reader: Reader) -> None:
    """A large document is read only for a word that no other document has."""
    large = Doc(("river " * 99 + "mill. ") * 5_000, "large", {"n": -1})  # 3 MB
    tiny = [
        Doc(f"Note {number} on the viper.", None, {"n": number})
        for number in range(300)
    ]
    found = host.ask([*tiny, large], "When does the viper sleep?", scorer=reader)
    assert len(found) == 10
    assert -1 not in numbers(found)
    assert sum(map(len, reader.read)) < 1_000
    large.text += "A lynx came. "
    (best,) = host.ask([*tiny, large], "Which lynx came?", scorer=reader, k=1)
    assert best.text == "A lynx came."


# First stages of the framework


@both_retrievers
def test_a_first_stage_under_either_name(host: Holding, reader: Reader) -> None:
    stage = host.first_stage(lambda query: host.given([NOTES[5], NOTES[2]]))
    for name in ("first_stage", "retriever"):
        assert numbers(
            host.ask(NOTES, QUERY, scorer=reader, k=None, **{name: stage})
        ) == {5, 2}
    alone = host.kind(first_stage=stage, scorer=reader, read_documents=1)
    assert numbers(asked(host, alone)) == {5}
    for wrong, error, message in (
        (
            {"first_stage": "bm25", "retriever": stage},
            ValueError,
            "retriever: got first_stage as well",
        ),
        ({"first_stage": 3}, TypeError, "first_stage.* int; expected"),
        ({"retriever": 3}, TypeError, "retriever.* int; expected"),
        ({"first_stage": "none"}, ValueError, "neither .* nor a retriever"),
        ({}, ValueError, "neither .* nor a retriever"),
    ):
        with pytest.raises(error, match=message):
            host.kind(**wrong)
    with pytest.raises(ValueError, match="first_stage: got 'bm26'"):
        host.of([], first_stage="bm26")


@both_retrievers
@pytest.mark.parametrize("name", ["read_documents", "read_tokens"])
@pytest.mark.parametrize("value", [0, 0.5, True])
def test_bounds_out_of_range_are_refused_by_name(
    host: Holding, name: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=f"{name}: got {value}"):
        host.of(NOTES, scorer=Uncounted(), **{name: value})


@both_retrievers
def test_what_was_found_is_read_whole_and_in_its_order(host: Holding) -> None:
    parts = [
        NOTES[7],
        NOTES[3],
        Doc("A stranger's note. It rained.", "x", {"n": 99, "score": 0.5}),
    ]
    stage = host.first_stage(lambda query: host.given(parts))
    options: dict[str, Any] = {
        "order": "document",
        "retriever": stage,
        "keep_retrieval_score": True,
    }
    found = host.ask(NOTES, QUERY, scorer=Uncounted(), **options)
    assert [each.metadata["n"] for each in found] == [7, 7, 3, 3, 99, 99]
    assert [each.retrieval_score for each in found] == [None] * 4 + [0.5] * 2
    bounded = host.ask(NOTES, QUERY, scorer=Uncounted(), read_documents=2, **options)
    assert [each.metadata["n"] for each in bounded] == [7, 7, 3, 3]
    assert (
        host.ask(
            NOTES,
            QUERY,
            model="no/such-model",
            retriever=host.first_stage(lambda query: []),
        )
        == []
    )


@both_retrievers
@pytest.mark.parametrize("answer", [None, "text"])
async def test_a_first_stage_that_answers_no_list_is_not_replaced_by_bm25(
    host: Holding, answer: Any
) -> None:
    made = host.of(
        NOTES,
        scorer=Uncounted(),
        retriever=host.first_stage(lambda query: answer, odd=True),
    )
    message = f"the first stage returned {type(answer).__name__}; expected a list"
    with pytest.raises(TypeError, match=message):
        host.call(made, QUERY, ())
    with pytest.raises(TypeError, match=message):
        await host.acall(made, QUERY, ())


@both_retrievers
def test_an_error_of_the_first_stage_is_not_swallowed(host: Holding) -> None:
    def fail(query: str) -> None:
        raise ConnectionError("store is down")

    with pytest.raises(ConnectionError, match="store is down"):
        host.ask(NOTES, QUERY, scorer=Uncounted(), retriever=host.first_stage(fail))


# Changes


@both_retrievers
def test_adding_and_deleting_count_what_is_new(
    host: Holding, reader: Reader, counted: list[str]
) -> None:
    made = host.of(NOTES, scorer=reader, read_documents=1, k=1)
    assert len(counted) == 30  # at once, and without a model
    host.add(made, [Doc("A lynx in snow.", "lynx", {"n": 99})])
    assert numbers(asked(host, made, "lynx")) == {99}
    host.add(
        made, [Doc("A snake in snow.", "lynx", {"n": 98})]
    )  # in the place of the earlier one
    assert numbers(asked(host, made, "snake")) == {98}
    host.delete(made, "lynx")
    assert numbers(asked(host, made, "lynx snake")) == {0}
    with pytest.raises(ValueError, match="no document 'lynx' here"):
        host.delete(made, "1", "lynx")
    assert len(counted) == 32
    assert reader.units_of_collection == [61, 61, 60]
    host.delete(made, *(note.id or "" for note in NOTES))
    assert asked(host, made) == []


@both_retrievers
def test_copies_count_no_words(
    host: Holding, monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Path
) -> None:
    made = host.of(NOTES, model=str(tiny_checkpoint), device="cpu", dtype="float32")
    data, expected = pickle.dumps(made), host.call(made, QUERY, ())
    monkeypatch.setattr(CollectionIndex, "add", None)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(data)):
        assert host.call(other, QUERY, ()) == expected
        host.delete(other, "17")
    assert host.call(made, QUERY, ()) == expected  # copies change independently


@both_retrievers
def test_a_question_sees_the_documents_as_they_were(host: Holding) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Waits(Reader):
        def score_units_many(
            self, requests: Sequence[Any], **options: Any
        ) -> list[UnitScores]:
            began.set()
            assert go_on.wait(10)
            return super().score_units_many(requests, **options)

    scorer = Waits()
    made = host.of(NOTES[:5], scorer=scorer, k=None, batch_size=2)
    with ThreadPoolExecutor(1) as thread:
        question = thread.submit(asked, host, made)
        assert began.wait(10)
        host.add(made, NOTES[5:8])
        host.delete(made, "0")
        go_on.set()
        assert numbers(question.result()) == {0, 1, 2, 3, 4}
    assert scorer.units_of_collection == [10, 10, 10]
    assert numbers(asked(host, made)) == {1, 2, 3, 4, 5, 6, 7}


@both_retrievers
def test_adding_and_deleting_while_others_ask(host: Holding) -> None:
    made = host.of(NOTES[:1], scorer=Uncounted(), first_stage="none", k=None)

    def change(number: int) -> None:
        host.add(
            made,
            [Doc(f"Text {number}.", f"kept {number}"), Doc("Text.", f"gone {number}")],
        )
        host.delete(made, f"gone {number}")

    with ThreadPoolExecutor(6) as threads:
        changes = [threads.submit(change, number) for number in range(60)]
        assert all(
            "0:0-7" in [e.id for e in found]
            for found in threads.map(lambda _: asked(host, made), range(30))
        )
        for done in changes:
            done.result()
    assert len({each.id for each in asked(host, made)}) == 62  # none was lost


@pytest.mark.slow
@both_retrievers
def test_tens_of_thousands_of_documents(host: Holding) -> None:
    docs = [Doc(f"Note {number} on the viper.") for number in range(30_000)]
    found = host.ask(docs, "Which note is 27777?", scorer=Reader())
    assert "Note 27777 on the viper." in [each.text for each in found]


# Folders


@both_retrievers
def test_persist_and_load(
    host: Holding, reader: Reader, tmp_path: Path, counted: list[str]
) -> None:
    notes = copy.deepcopy(NOTES)
    notes[0].metadata["nested"] = {"list": [1, 2.5, None, "\ud800"]}
    options = host.options({"scorer": reader, "k": 7}) | host.only(even=1)
    made = host.of(notes, scorer=reader, k=7, **host.only(even=1))
    made.persist(tmp_path / "kept")
    loaded = host.kind.load(tmp_path / "kept", **options)
    assert host.call(loaded, QUERY, ()) == host.call(made, QUERY, ())
    assert len(counted) == 30  # nothing is counted again
    host.add(loaded, [Doc("A lynx in snow.", "lynx", {"n": 99, "even": 1})])
    loaded.persist(tmp_path / "kept")
    again = host.kind.load(str(tmp_path / "kept"), scorer=reader, read_documents=1)
    assert numbers(asked(host, again, "lynx")) == {99}
    host.of([], scorer=reader).persist(tmp_path / "empty")
    assert asked(host, host.kind.load(tmp_path / "empty", model="no/such-model")) == []


@both_retrievers
def test_a_folder_that_an_earlier_version_wrote_is_read(
    host: Holding, counted: list[str]
) -> None:
    folder = (
        OLD_FOLDERS
        / json.loads((OLD_FOLDERS / "of.json").read_text("utf-8"))[type(host).__name__]
    )
    found = asked(host, host.kind.load(folder, scorer=Uncounted(), order="document"))
    assert [each.text for each in found][:2] == ["The well was dry.", "They left."]
    assert len(found) == 3
    assert found[0].id == "a:0-17"
    assert counted == []


@both_retrievers
def test_a_folder_that_cannot_be_read_is_refused_by_name(
    host: Holding, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"got no manifest\.json there"):
        host.kind.load(tmp_path, scorer=Uncounted())
    host.of(NOTES[:1], scorer=Uncounted()).persist(tmp_path)
    other = next(each for each in HOLDING if each is not host)
    with pytest.raises(ValueError, match=r"got documents of '.*'; expected those of"):
        other.kind.load(tmp_path, scorer=Uncounted())


@both_retrievers
@pytest.mark.parametrize(
    "record",
    [{}, {"text": 3}, {"role": None, "page_content": 1}, {"role": "node", "node": 3}],
)
def test_documents_of_another_form_are_refused(
    host: Holding, tmp_path: Path, record: dict[str, Any]
) -> None:
    host.of(NOTES[:1], scorer=Uncounted()).persist(tmp_path)
    framework = json.loads((tmp_path / "manifest.json").read_text("utf-8"))["framework"]
    write_corpus(tmp_path, framework, [record], HeldTexts())
    with pytest.raises(
        ValueError,
        match=rf"(?s)documents that are not {framework}'s .*: persist them again",
    ):
        host.kind.load(tmp_path, scorer=Uncounted())


@both_retrievers
def test_metadata_that_json_cannot_keep_are_named(
    host: Holding, tmp_path: Path
) -> None:
    notes = [Doc("A note.", "d", {"when": date(1911, 5, 14)})]
    with pytest.raises(ValueError, match=r"metadata\['when'\] of \w+ 'd' is date"):
        host.of(notes, scorer=Uncounted()).persist(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_two_whole_texts_with_one_id() -> None:
    _, llama_index = HOLDING
    docs = [Doc("The viper sleeps.", "a"), Doc("The soup is hot.", "a")]
    with pytest.raises(ValueError, match="two different ones with the id 'a'"):
        LlamaIndexRetriever([], documents=llama_index.given(docs))


@both_retrievers
def test_what_is_no_document_is_refused(host: Holding) -> None:
    with pytest.raises(TypeError, match=r"(got|is) str; expected"):
        host.kind.from_documents(["a text"], scorer=Uncounted())
