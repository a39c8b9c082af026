import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.baselines.activations import check_activations
from spscanner_rag.baselines.cross_encoder import CrossEncoder

transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

SaveBert = Callable[[Path, int | None], Path]

TEXT = (
    "The keeper wrote the date. He signed the treaty and the captain left. It rained."
    " The bell rang!"
)
QUERY = "Who signed the treaty?"


@pytest.fixture(scope="module")
def folder(cross_encoder_folder: Path) -> Path:
    return cross_encoder_folder


@pytest.fixture
def reranker(folder: Path) -> CrossEncoder:
    return CrossEncoder(folder, device="cpu")


def reference(folder: Path, query: str, texts: list[str]) -> np.ndarray:
    """The logits that transformers gives, one pair at a time, without padding."""
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits = [
            model(**tokenizer(query, text, truncation=True, return_tensors="pt"))
            .logits[0, 0]
            .item()
            for text in texts
        ]
    return np.array(logits, np.float32)


def test_scores_are_the_models_logits_in_the_order_of_the_units(
    reranker: CrossEncoder, folder: Path
) -> None:
    units = reranker.units_of(TEXT)
    texts = [TEXT[unit.start : unit.end] for unit in units]
    assert texts[2] == "It rained."
    logits = reranker.score_units(QUERY, TEXT, units)
    assert logits.dtype == np.float32
    assert np.ptp(logits) > 0.1
    np.testing.assert_allclose(logits, reference(folder, QUERY, texts), atol=1e-4)
    assert min(logits) < 0 or max(logits) > 1, "an activation would give shares"


def test_remote_code_is_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bool] = []

    def refused(*_: Any, trust_remote_code: bool, **__: Any) -> Any:
        given.append(trust_remote_code)
        raise OSError("401 for all\nmore")

    monkeypatch.setattr(sentence_transformers, "CrossEncoder", refused)
    with pytest.raises(ValueError, match="401"):
        CrossEncoder(folder, trust_remote_code=True)
    with pytest.raises(ValueError, match="401 for all; pass a local folder") as caught:
        CrossEncoder("owner/name")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert given == [True, False]


def test_a_model_of_several_labels_is_refused(
    save_bert: SaveBert, tmp_path: Path
) -> None:
    with pytest.raises(
        ValueError,
        match=r"head with 3 labels \(LABEL_0, LABEL_1, LABEL_2\).*expected one",
    ):
        CrossEncoder(save_bert(tmp_path, 3), device="cpu")


def test_infinite_logits_are_refused(
    reranker: CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reranker._model,
        "predict",
        lambda pairs, **_: np.array([np.nan if "bell" in t else 1 for _, t in pairs]),
    )
    with pytest.raises(ValueError, match="gives nan for 'The bell rang!'"):
        reranker.score_units(QUERY, TEXT, reranker.units_of(TEXT))


@pytest.mark.parametrize(
    "key", ["activation_fn", "sbert_ce_default_activation_function"]
)
@pytest.mark.parametrize(
    "name",
    ["torch.seed", "torch.hub.list", "torch.nn.Module", "torch.backends.quantized", 7],
)
def test_a_folder_names_activations_of_torch_and_nothing_else(
    folder: Path,
    tmp_path: Path,
    key: str,
    name: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "model"))
    path = copied / "config.json"
    settings = json.loads(path.read_text())

    def named(function: object) -> Path:
        given = {key: function}
        path.write_text(
            json.dumps(
                settings
                | (given if "sbert" in key else {"sentence_transformers": given})
            )
        )
        return copied

    monkeypatch.setattr(torch, "seed", lambda: pytest.fail("was called"))
    kind = sentence_transformers.CrossEncoder
    monkeypatch.setattr(
        kind, "get_default_activation_fn", lambda _: pytest.fail("was called")
    )
    with pytest.raises(ValueError, match="as an activation function"):
        CrossEncoder(named(name), device="cpu")
    for known in ("torch.nn.modules.linear.Identity", "torch.nn.Sigmoid"):
        check_activations(named(known))
    CrossEncoder(copied, device="cpu").score_texts(QUERY, ["He left."])
