"""Fields: checked early, stored and read back.

The model loads late and once; a token is never shown.
"""

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer

QUERY = "Who signed the treaty?"
NODE = TextNode(
    text="He signed the treaty. It rained for a week. The ship left.", id_="n"
)
TOKEN = "hf_a-secret-token"


class PlainScorer(Scorer):
    """It can be pickled, and cannot count tokens."""

    def score_units(self, query: str, text: str, units: Any) -> Any:
        return np.arange(len(units), dtype=np.float32)


def scores(post: SPScannerPostprocessor) -> list[tuple[str, float | None]]:
    return [
        (n.node.node_id, n.score)
        for n in post.postprocess_nodes([NODE], query_str=QUERY)
    ]


def test_combinations_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="top_n_per_document"):
        SPScannerPostprocessor(group_by="node", top_n_per_document=1)
    with pytest.raises(ValueError, match="two different ones with the id 'a'"):
        SPScannerPostprocessor(
            documents=[Document(text=text, id_="a") for text in "xy"]
        )


def test_a_dictionary_holds_all_settings_and_gives_them_back() -> None:
    settings: dict[str, Any] = {
        "model": "some/folder",
        "backend": "torch",
        "read": "auto",
        "model_kwargs": {"local_files_only": True, "revision": "main"},
        "top_n": 7,
        "threshold": 0.25,
        "keep": None,
        "prefer": "newest",
        "require_answer": None,
        "max_tokens": 100,
        "prompt": None,
        "count_tokens": "o200k_base",
        "context_sentences": 2,
        "order": "document",
        "merge_adjacent": True,
        "diversity": 0.7,
        "always_keep": [r"\d+ EUR"],
        "device": "cpu",
        "dtype": "float32",
        "batch_size": 3,
        "return_nodes": "pruned",
        "keep_retrieval_score": True,
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
        model=tmp_path,
        device=torch.device("cpu"),
        dtype=torch.float32,
        model_kwargs={"cache_dir": tmp_path},
    )
    data = json.loads(post.to_json())
    assert (data["model"], data["device"], data["dtype"]) == (
        str(tmp_path),
        "cpu",
        "float32",
    )
    assert data["model_kwargs"] == {"cache_dir": str(tmp_path)}


def test_a_scanner_is_stored_as_what_loads_it_again(
    tiny_checkpoint: Path, no_shared_scanners: None
) -> None:
    scanner = Scanner.from_pretrained(
        tiny_checkpoint,
        device="cpu",
        dtype="float32",
        segment_tokens=16,
        segmenter="sentence",
    )
    post = SPScannerPostprocessor(scanner=scanner)
    data = post.to_dict()
    assert (data["model"], data["device"], data["dtype"]) == (
        str(tiny_checkpoint),
        "cpu",
        "float32",
    )
    assert data["model_kwargs"]["segment_tokens"] == 16
    for back in (
        SPScannerPostprocessor.from_dict(data),
        pickle.loads(pickle.dumps(post)),
    ):
        assert back.scanner is None
        assert scores(back) == scores(post)
    assert len(pickle.dumps(post)) < 3000  # without the weights
    assert copy.deepcopy(post).scanner is scanner


def test_a_scanner_without_torch_is_stored_with_its_backend(
    tiny_checkpoint: Path, no_shared_scanners: None
) -> None:
    scanner = Scanner.from_pretrained(tiny_checkpoint, backend="numpy")
    post = SPScannerPostprocessor(scanner=scanner)
    data = post.to_dict()
    assert data["backend"] == "numpy"
    back = SPScannerPostprocessor.from_dict(data)
    assert back.backend == pickle.loads(pickle.dumps(post)).backend == "numpy"
    assert scores(back) == scores(post)


def test_a_scanner_from_the_hub_is_stored_with_its_commit(
    tiny_scanner: Scanner, tmp_path: Path
) -> None:
    scanner = copy.copy(tiny_scanner)
    scanner.checkpoint = replace(
        tiny_scanner.checkpoint,
        source="owner/name",
        folder=tmp_path / "snapshots" / "0123abc",
    )
    data = SPScannerPostprocessor(scanner=scanner).to_dict()
    assert (data["model"], data["model_kwargs"]["revision"]) == (
        "owner/name",
        "0123abc",
    )


def test_a_scanner_with_a_segmenter_of_its_own_is_not_silently_another(
    tiny_checkpoint: Path,
) -> None:
    class Lines:
        def segment(self, text: str) -> list[Any]:
            return []

    scanner = Scanner.from_pretrained(
        tiny_checkpoint, device="cpu", dtype="float32", segmenter=Lines()
    )
    data = SPScannerPostprocessor(scanner=scanner).to_dict()
    with pytest.raises(ValueError, match="Lines"):
        scores(SPScannerPostprocessor.from_dict(data))


@pytest.mark.parametrize("name", ["scorer", "count_tokens", "prompt"])
def test_objects_have_to_be_given_again(name: str) -> None:
    value: Any = PlainScorer() if name == "scorer" else len
    post = SPScannerPostprocessor(**{name: value})
    data = json.loads(post.to_json())
    with pytest.raises((ValueError, TypeError), match=name):
        SPScannerPostprocessor.from_dict(data)
    assert (
        getattr(SPScannerPostprocessor.from_dict(data, **{name: value}), name) is value
    )
    assert getattr(copy.deepcopy(post), name) is value
    assert type(getattr(pickle.loads(pickle.dumps(post)), name)) is type(value)


def test_a_scorer_that_cannot_be_pickled_is_not_silently_dropped() -> None:
    class Local(PlainScorer):
        pass

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(SPScannerPostprocessor(scorer=Local()))


def test_documents_stay_out_of_dictionaries_but_not_of_pickles(
    word_scorer: Any,
) -> None:
    store = SimpleDocumentStore()
    store.add_documents([Document(text="It rained.", id_="b")])
    post = SPScannerPostprocessor(
        documents=[Document(text="He signed.", id_="a")], docstore=store
    )
    assert not {"documents", "docstore"} & post.to_dict().keys()
    assert "He signed" not in repr(post)
    back = pickle.loads(pickle.dumps(post))
    assert (back.documents[0].text, back.docstore.get_document("b").text) == (
        "He signed.",
        "It rained.",
    )
    assert copy.deepcopy(post).docstore is store
