"""Fields: checked early, stored and read back; the model loads late and once; a token is never seen."""

import copy
import json
import logging
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from pydantic import ValidationError

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever
from spscanner_rag.scanner import Scanner

QUERY = "Who signed the treaty?"
NODE = TextNode(text="He signed the treaty. It rained for a week. The ship left.", id_="n")
TOKEN = "hf_a-secret-token"


class PlainScorer:
    """Can be pickled; cannot count tokens."""

    def score_units(self, query: str, text: str, units: Any) -> Any:
        return np.arange(len(units), dtype=np.float32)


def scores(post: SPScannerPostprocessor) -> list[tuple[str, float | None]]:
    return [(n.node.node_id, n.score) for n in post.postprocess_nodes([NODE], query_str=QUERY)]  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_n", 0),
        ("top_n", -1),
        ("top_n", True),
        ("top_n", 1.5),
        ("top_n", "3"),
        ("threshold", 1.1),
        ("threshold", -0.1),
        ("max_tokens", 0),
        ("count_tokens", "no such encoding"),
        ("count_tokens", 3),
        ("context_sentences", -1),
        ("order", "best"),
        ("group_by", "page"),
        ("batch_size", 0),
        ("top_n_per_document", 0),
        ("scanner", "default"),
        ("docstore", {}),
        ("topn", 3),
    ],
)
def test_values_out_of_range_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        SPScannerPostprocessor(**{field: value})


def test_combinations_that_mean_nothing_are_refused(tiny_scanner: Scanner, word_scorer: Any) -> None:
    with pytest.raises(ValueError, match="got scanner and scorer"):
        SPScannerPostprocessor(scanner=tiny_scanner, scorer=word_scorer)
    with pytest.raises(ValueError, match="got model and scorer"):
        SPScannerPostprocessor(model="no/such-model", scorer=word_scorer)
    with pytest.raises(TypeError, match="score_units"):
        SPScannerPostprocessor(scorer=object())
    with pytest.raises(ValueError, match="PlainScorer counts no tokens"):
        SPScannerPostprocessor(scorer=PlainScorer(), max_tokens=10)
    SPScannerPostprocessor(scorer=PlainScorer(), max_tokens=10, count_tokens=len)
    with pytest.raises(ValueError, match="top_n_per_document"):
        SPScannerPostprocessor(group_by="node", top_n_per_document=1)
    with pytest.raises(ValueError, match="two texts with the id 'a'"):
        SPScannerPostprocessor(documents=[Document(text=text, id_="a") for text in "xy"])


def test_an_assignment_is_checked_and_a_refused_one_changes_nothing(word_scorer: Any) -> None:
    post = SPScannerPostprocessor(scorer=word_scorer, top_n=2)
    with pytest.raises(ValueError, match="top_n"):
        post.top_n = 0
    assert post.top_n == 2
    post.top_n = 1
    assert len(scores(post)) == 1


def test_a_dictionary_holds_all_settings_and_gives_them_back() -> None:
    settings: dict[str, Any] = {
        "model": "some/folder",
        "backend": "torch",
        "model_kwargs": {"local_files_only": True, "revision": "main"},
        "top_n": 7,
        "threshold": 0.25,
        "max_tokens": 100,
        "count_tokens": "o200k_base",
        "context_sentences": 2,
        "order": "document",
        "merge_adjacent": True,
        "diversity": 0.7,
        "device": "cpu",
        "dtype": "float32",
        "batch_size": 3,
        "return_nodes": "pruned",
        "keep_retrieval_score": True,
        "keep_compression": True,
        "group_by": "document",
        "document_key": "file_path",
        "top_n_per_document": 4,
    }
    post = SPScannerPostprocessor(**settings)
    data = post.to_dict()
    assert data == {**settings, "scorer": None, "class_name": "SPScannerPostprocessor"}
    for back in (
        SPScannerPostprocessor.from_dict(data),
        SPScannerPostprocessor.from_json(post.to_json()),
        pickle.loads(pickle.dumps(post)),
        copy.deepcopy(post),
        copy.copy(post),
        SPScannerPostprocessor.model_validate(settings),
    ):
        assert back.to_dict() == data


def test_paths_devices_and_dtypes_are_stored_as_text(tmp_path: Path) -> None:
    post = SPScannerPostprocessor(
        model=tmp_path,  # type: ignore[arg-type]
        device=torch.device("cpu"),  # type: ignore[arg-type]
        dtype=torch.float32,  # type: ignore[arg-type]
        model_kwargs={"cache_dir": tmp_path},
    )
    data = json.loads(post.to_json())
    assert (data["model"], data["device"], data["dtype"]) == (str(tmp_path), "cpu", "float32")
    assert data["model_kwargs"] == {"cache_dir": str(tmp_path)}


def test_a_model_is_stored_by_its_name(tiny_checkpoint: Path, no_shared_scanners: None) -> None:
    post = SPScannerPostprocessor(model=str(tiny_checkpoint), device="cpu", dtype="float32")
    expected = scores(post)
    assert scores(SPScannerPostprocessor.from_json(post.to_json())) == expected
    assert scores(pickle.loads(pickle.dumps(post))) == expected


def test_a_scanner_is_stored_as_what_loads_it_again(tiny_checkpoint: Path, no_shared_scanners: None) -> None:
    scanner = Scanner.from_pretrained(
        tiny_checkpoint, device="cpu", dtype="float32", segment_tokens=16, segmenter="sentence"
    )
    post = SPScannerPostprocessor(scanner=scanner)
    data = post.to_dict()
    assert (data["model"], data["device"], data["dtype"]) == (str(tiny_checkpoint), "cpu", "float32")
    assert data["model_kwargs"]["segment_tokens"] == 16
    for back in (SPScannerPostprocessor.from_dict(data), pickle.loads(pickle.dumps(post))):
        assert back.scanner is None
        assert scores(back) == scores(post)
    assert len(pickle.dumps(post)) < 3000  # without the weights
    assert copy.deepcopy(post).scanner is scanner


def test_a_scanner_from_the_hub_is_stored_with_its_commit(tiny_scanner: Scanner, tmp_path: Path) -> None:
    scanner = copy.copy(tiny_scanner)
    scanner.checkpoint = replace(
        tiny_scanner.checkpoint, source="owner/name", folder=tmp_path / "snapshots" / "0123abc"
    )
    data = SPScannerPostprocessor(scanner=scanner).to_dict()
    assert (data["model"], data["model_kwargs"]["revision"]) == ("owner/name", "0123abc")


def test_the_bundled_checkpoint_is_stored_as_such() -> None:
    class Bundled(SPScannerPostprocessor):
        pass

    scanner = Scanner.from_pretrained(device="cpu", dtype="float32")
    assert Bundled(scanner=scanner).to_dict()["model"] is None


def test_a_scanner_with_a_segmenter_of_its_own_is_not_silently_another(tiny_checkpoint: Path) -> None:
    class Lines:
        def segment(self, text: str) -> list[Any]:
            return []

    scanner = Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="float32", segmenter=Lines())
    data = SPScannerPostprocessor(scanner=scanner).to_dict()
    with pytest.raises(ValueError, match="Lines"):
        SPScannerPostprocessor.from_dict(data)


@pytest.mark.parametrize("name", ["scorer", "count_tokens"])
def test_objects_have_to_be_given_again(name: str) -> None:
    value: Any = PlainScorer() if name == "scorer" else len
    post = SPScannerPostprocessor(**{name: value})
    data = json.loads(post.to_json())
    with pytest.raises(ValueError, match=rf"from_dict\(data, {name}=...\)"):
        SPScannerPostprocessor.from_dict(data)
    assert getattr(SPScannerPostprocessor.from_dict(data, **{name: value}), name) is value
    assert getattr(copy.deepcopy(post), name) is value
    assert type(getattr(pickle.loads(pickle.dumps(post)), name)) is type(value)


def test_a_scorer_that_cannot_be_pickled_is_not_silently_dropped() -> None:
    class Local(PlainScorer):
        pass

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(SPScannerPostprocessor(scorer=Local()))


def test_documents_stay_out_of_dictionaries_but_not_of_pickles(word_scorer: Any) -> None:
    store = SimpleDocumentStore()
    store.add_documents([Document(text="It rained.", id_="b")])
    post = SPScannerPostprocessor(documents=[Document(text="He signed.", id_="a")], docstore=store)
    assert not {"documents", "docstore"} & post.to_dict().keys()
    assert "He signed" not in repr(post)
    back = pickle.loads(pickle.dumps(post))
    assert (back.documents[0].text, back.docstore.get_document("b").text) == ("He signed.", "It rained.")
    assert copy.deepcopy(post).docstore is store


def test_a_token_is_never_visible(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    kwargs = {"token": TOKEN, "local_files_only": True}
    (tmp_path / "missing").mkdir()
    post = SPScannerPostprocessor(model=str(tmp_path / "missing"), model_kwargs=kwargs)
    seen = [repr(post), str(post), str(post.to_dict()), post.to_json(), str(post.model_dump())]
    seen.append(str(pickle.dumps(post)))
    seen.append(repr(copy.deepcopy(post)))
    for wrong in ({"top_n": 0}, {"batch_size": 0}, {"no_such_field": 1}):
        with pytest.raises(ValueError, match="SPScannerPostprocessor") as refused:
            SPScannerPostprocessor(model_kwargs=kwargs, **wrong)
        seen.append(str(refused.value) + repr(refused.value) + str(refused.value.errors()))  # type: ignore[attr-defined]
    for unusable in ([("token", TOKEN)], TOKEN, {**kwargs, "windows": 1}):
        with pytest.raises(ValidationError, match="SPScannerPostprocessor") as invalid:
            SPScannerPostprocessor.model_validate({"model_kwargs": unusable})
        seen.append(str(invalid.value.errors()) + invalid.value.json())
        with pytest.raises(ValidationError, match="SPScannerPostprocessor") as invalid:
            post.model_kwargs = unusable  # type: ignore[assignment]
        seen.append(str(invalid.value.errors()) + invalid.value.json())
    with pytest.raises(Exception, match="missing") as failed:
        scores(post)
    seen.append(str(failed.value))
    with pytest.raises(ValidationError, match="no such folder") as invalid:
        SPScannerPostprocessor(model=str(tmp_path / "absent"), model_kwargs=kwargs)
    seen.append(str(invalid.value) + str(invalid.value.errors()) + invalid.value.json())
    retriever = SPScannerRetriever([NODE], model=str(tmp_path / "missing"), model_kwargs=kwargs)
    seen.append(repr(retriever) + str(vars(retriever)) + str(pickle.dumps(retriever)))
    assert not [text for text in [*seen, caplog.text] if TOKEN in text]
    assert kwargs["token"] == TOKEN


def test_a_token_reaches_the_hub(
    monkeypatch: pytest.MonkeyPatch, tiny_scanner: Scanner, no_shared_scanners: None
) -> None:
    given: list[Any] = []

    def load(model: Any, **options: Any) -> Scanner:
        given.append(options.get("token"))
        return tiny_scanner

    monkeypatch.setattr(Scanner, "from_pretrained", load)
    post = SPScannerPostprocessor(model="some/model", model_kwargs={"token": TOKEN})
    scores(copy.deepcopy(post))
    SPScannerRetriever([NODE], model="other/model", model_kwargs={"token": TOKEN}).retrieve(QUERY)
    assert given == [TOKEN, TOKEN]
    post.model_kwargs = {"token": "another-secret"}
    assert "another-secret" not in repr(post)
    scores(post)
    assert given[-1] == "another-secret"


def test_the_model_loads_at_first_use_and_once(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Path, no_shared_scanners: None
) -> None:
    loads: list[Any] = []
    original = Scanner.from_pretrained

    def counted(model: Any = None, **options: Any) -> Scanner:
        loads.append(model)
        return original(model, **options)

    monkeypatch.setattr(Scanner, "from_pretrained", counted)
    options: dict[str, Any] = {"model": str(tiny_checkpoint), "device": "cpu", "dtype": "float32"}
    posts = [SPScannerPostprocessor(**options, top_n=n + 1) for n in range(4)]
    retriever = SPScannerRetriever([NODE], **options)
    posts.append(copy.deepcopy(posts[0]))
    posts.append(pickle.loads(pickle.dumps(posts[0])))
    posts[0].to_dict()
    assert loads == []
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(scores, posts))
    assert retriever.retrieve(QUERY)
    assert loads == [str(tiny_checkpoint)]


@pytest.mark.parametrize(
    "module", ["llama_index.postprocessor.spscanner", "llama_index.retrievers.spscanner"]
)
def test_without_the_framework_the_extra_is_named(module: str) -> None:
    code = f"import sys; sys.modules['llama_index.core'] = None; import {module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'ImportError: LlamaIndex is missing: pip install "spscanner-rag[llama-index]"' in run.stderr


def test_the_settings_have_a_json_schema() -> None:
    properties = SPScannerPostprocessor.model_json_schema()["properties"]
    assert {"top_n", "threshold", "count_tokens"} <= properties.keys()
    assert not {"scanner", "documents", "docstore"} & properties.keys()


def test_a_model_in_use_may_be_moved(tiny_checkpoint: Path, tmp_path: Path, no_shared_scanners: None) -> None:
    here = tmp_path / "here"
    shutil.copytree(tiny_checkpoint, here)
    post = SPScannerPostprocessor(model=str(here), device="cpu", dtype="float32")
    scanner = post._search().choice.resolve()
    here.rename(tmp_path / "there")
    assert post._search().selection.top_k == 50  # what every question does before it asks for the scanner
    assert SPScannerPostprocessor(scanner=scanner).postprocess_nodes(
        [NodeWithScore(node=NODE)], query_str=QUERY
    )
    with pytest.raises(ValidationError, match="here: no such folder"):
        SPScannerPostprocessor(model=str(here))
