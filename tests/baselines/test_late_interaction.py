"""Late interaction against its formula, over the layouts of checkpoints that it reads."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spscanner_rag.baselines import LateInteraction, dense
from spscanner_rag.text.units import Unit

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXT = "The keeper wrote the date. He signed the treaty and the captain left. It rained. The bell rang!"
QUERY = "Who signed the treaty?"


@pytest.fixture(scope="module")
def plain(bert_folder: Path) -> LateInteraction:
    return LateInteraction(bert_folder, device="cpu")


def token_vectors(folder: Path, text: str) -> np.ndarray:
    """The last hidden states of transformers, each of length 1."""
    transformers = pytest.importorskip("transformers")
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        vectors = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_hand(folder: Path, query: str, texts: Sequence[str]) -> np.ndarray:
    asked = token_vectors(folder, query)
    return np.array([(asked @ token_vectors(folder, text).T).max(axis=1).mean() for text in texts])


def stanford(folder: Path, bert_folder: Path, projection: torch.Tensor | None) -> Path:
    """A checkpoint in the layout of the authors: encoder and ``linear.weight`` in one file."""
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = {f"bert.{name}": value for name, value in load_file(bert_folder / "model.safetensors").items()}
    if projection is not None:
        weights["linear.weight"] = projection
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((bert_folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    settings = {"query_maxlen": 8, "doc_maxlen": 24, "mask_punctuation": True}
    markers = {"query_token_id": "who", "doc_token_id": "it"}
    (folder / "artifact.metadata").write_text(json.dumps(settings | markers))
    return folder


def test_the_mean_of_the_best_cosines(plain: LateInteraction, bert_folder: Path) -> None:
    units = plain.segment(TEXT)
    texts = [TEXT[unit.start : unit.end] for unit in units]
    expected = by_hand(bert_folder, QUERY, texts)
    np.testing.assert_allclose(plain.raw_scores(QUERY, TEXT, units), expected, atol=1e-4)
    logits = plain.score_units(QUERY, TEXT, units)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), (1 + expected) / 2, atol=1e-4)
    (same,) = plain.score_units(QUERY, QUERY, [Unit(0, len(QUERY), QUERY)])
    assert 1 / (1 + np.exp(-same)) > 0.9999


def watched(scorer: LateInteraction, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the texts which the model of a scorer reads from now on."""
    read: list[str] = []
    encode = scorer._encoder.encode_document

    def documents(texts: list[str], **options: Any) -> Any:
        read.extend(texts)
        return encode(texts, **options)

    monkeypatch.setattr(scorer._encoder, "encode_document", documents)
    monkeypatch.setattr(dense, "_READ_AT_ONCE", 3)
    return read


def test_a_text_is_read_once_for_all(plain: LateInteraction, monkeypatch: pytest.MonkeyPatch) -> None:
    units = plain.segment(TEXT)
    queries = [QUERY, "It rained.", "Who left?"]
    alone = [plain.score_units(query, TEXT, units) for query in queries]
    read = watched(plain, monkeypatch)
    requests = [(query, TEXT, units) for query in queries]
    together = plain.score_units_many([*requests, (QUERY, "It rained.", [Unit(0, 10, "It rained.")])])
    assert len(read) == len(units) + 1
    for one, many in zip(alone, together, strict=False):
        np.testing.assert_allclose(one, many, atol=1e-5)


def test_long_units_in_pieces(
    plain: LateInteraction, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "It rained and the bell rang. " * 20 + "He signed the treaty."  # the model reads 32 tokens
    read = watched(plain, monkeypatch)
    (score,) = plain.raw_scores("signed the treaty", text, [Unit(0, len(text), text)])
    assert "".join(read) == text
    assert max(plain.n_tokens(piece) for piece in read) <= 32
    asked = token_vectors(bert_folder, "signed the treaty")
    pieces = np.concatenate([token_vectors(bert_folder, piece) for piece in read])
    np.testing.assert_allclose(score, (asked @ pieces.T).max(axis=1).mean(), atol=1e-4)


def test_stanfords_checkpoint_with_its_projection(bert_folder: Path, tmp_path: Path) -> None:
    projection = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    colbert = LateInteraction(stanford(tmp_path / "colbert", bert_folder, projection), device="cpu")
    encoder = colbert._encoder
    units = colbert.segment(TEXT)
    texts = ["It rained. The bell rang!", *(TEXT[unit.start : unit.end] for unit in units)]
    (asked,) = encoder.encode_query([QUERY], convert_to_numpy=True)
    read, *others = encoder.encode_document(texts, convert_to_numpy=True)
    assert asked.shape == (8, 8), "queries are expanded to query_maxlen"
    assert read.shape[1] == 8
    assert len(read) == colbert.n_tokens("it It rained. The bell rang!") - 2, "punctuation is masked"
    raw = colbert.raw_scores(QUERY, TEXT, units)
    expected = [(asked @ other.T).max(axis=1).mean() for other in others]
    np.testing.assert_allclose(raw, expected, atol=1e-4)


def test_without_a_projection_it_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a ColBERT checkpoint without a projection"):
        LateInteraction(stanford(tmp_path / "colbert", bert_folder, None), device="cpu")
    pylate = tmp_path / "pylate"
    sentence_transformers.SentenceTransformer(str(bert_folder), device="cpu").save(str(pylate))
    stated = json.loads((pylate / "config_sentence_transformers.json").read_text())
    (pylate / "config_sentence_transformers.json").write_text(json.dumps(stated | {"model_type": "ColBERT"}))
    with pytest.raises(ValueError, match="a module Dense in it"):
        LateInteraction(pylate, device="cpu")
