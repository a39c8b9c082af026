import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer

from spscanner_rag.baselines import pair_reader
from spscanner_rag.baselines.mamba_reranker import (
    FIRST_P_TOKENS,
    LONG_P_TOKENS,
    MambaReranker,
)
from spscanner_rag.checkpoint import CheckpointError, load_model
from spscanner_rag.scorers import ScanCancelled, score_batch

TEXT = (
    "The keeper wrote the date. He signed the treaty and the captain left. It rained."
    " The bell rang!"
)
QUERY = "Who signed the treaty?"


def changed(folder: Path, to: Path, change: Any) -> Path:
    """A copy of a checkpoint with other tensors."""
    to.mkdir()
    config = json.loads((folder / "config.json").read_text())
    del config["spscanner"]["sha256"]  # the weights must be others
    (to / "config.json").write_text(json.dumps(config))
    (to / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, to / "model.safetensors")
    return to


@pytest.fixture(scope="module")
def folder(mamba_folder: Path) -> Path:
    return mamba_folder


def loaded(folder: Path, **options: Any) -> MambaReranker:
    return MambaReranker(folder, device="cpu", dtype="float32", **options)


@pytest.fixture(scope="module")
def reranker(folder: Path) -> MambaReranker:
    return loaded(folder)


def reference(folder: Path, query: str, text: str) -> float:
    """The template in one call, with the head on the last token."""
    tokenizer, model = (
        Tokenizer.from_file(str(folder / "tokenizer.json")),
        load_model(folder),
    )
    read = f"document: {text}; query: {query};<|endoftext|>"
    ids = tokenizer.encode(read, add_special_tokens=False).ids
    assert ids[-1] == tokenizer.token_to_id("<|endoftext|>")
    with torch.no_grad():
        hidden, _ = model(torch.tensor([ids]))
        return float(model.score(hidden[0, -1:])[0])


def test_the_logit_of_the_last_token_of_the_template(
    reranker: MambaReranker, folder: Path
) -> None:
    units = reranker.units_of(TEXT)
    assert len(units) == 4
    expected = [reference(folder, QUERY, TEXT[unit.start : unit.end]) for unit in units]
    logits = reranker.score_units(f" {QUERY}\n", TEXT, units)
    assert logits.dtype == np.float32
    assert np.ptp(logits) > 0.1
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_braces_and_surrogates_in_a_text_are_read_as_they_are(
    reranker: MambaReranker, folder: Path
) -> None:
    scores = reranker.score_texts("who {query}", ["a {document} {0} \ud800"])
    assert scores[0] == pytest.approx(
        reference(folder, "who {query}", "a {document} {0} \ufffd"), abs=1e-4
    )


@pytest.mark.parametrize("segment_tokens", [16, 100, 5000])
def test_a_whole_document_is_read_to_its_end(folder: Path, segment_tokens: int) -> None:
    text = TEXT * 20
    reranker = loaded(folder, unit="document")
    reranker.segment_tokens = segment_tokens
    units = reranker.units_of(text)
    assert [(unit.start, unit.end) for unit in units] == [(0, len(text))]
    expected = reference(folder, QUERY, text)
    assert reranker.score_units(QUERY, text, units)[0] == pytest.approx(
        expected, abs=1e-4
    )
    assert reference(folder, QUERY, text[:-20]) != pytest.approx(expected, abs=1e-3)


def test_the_first_tokens_of_a_document(
    folder: Path,
    reranker: MambaReranker,
    tiny_tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (FIRST_P_TOKENS, LONG_P_TOKENS) == (512, 1536)
    text = TEXT * 3
    offsets = tiny_tokenizer.encode(text).offsets
    for pieces in (1 << 15, 16):  # long documents are tokenized in pieces
        monkeypatch.setattr(pair_reader, "_PIECE_CHARACTERS", pieces)
        for tokens in (1, 20, len(offsets) - 1, len(offsets), len(offsets) + 1):
            first = loaded(folder, unit="document", document_tokens=tokens)
            units = first.units_of(text)
            assert [(unit.start, unit.end) for unit in units] == [(0, len(text))]
            read = text[: offsets[min(tokens, len(offsets)) - 1][1]]
            expected = reranker.score_texts(QUERY, [read])
            np.testing.assert_allclose(
                first.score_units(QUERY, text, units), expected, atol=1e-5
            )


def test_cancelled_between_forward_passes(folder: Path) -> None:
    reranker = loaded(folder)
    reranker.segment_tokens = 8
    calls: list[None] = []

    def cancelled() -> bool:
        calls.append(None)
        return len(calls) > 6  # the text, its four units, and one step

    request = (QUERY, TEXT, reranker.units_of(TEXT))
    with pytest.raises(ScanCancelled):
        score_batch(reranker, [request], cancelled)
    assert len(calls) == 7


@pytest.mark.parametrize("prefix", ["backbone.", "model."])
@pytest.mark.parametrize("bias", [False, True])
def test_score_weight_of_a_sequence_classifier(
    folder: Path, tmp_path: Path, prefix: str, bias: bool
) -> None:
    def rename(tensors: dict[str, torch.Tensor]) -> None:
        tensors["score.weight"] = tensors.pop("binary_head.weight")
        given = tensors.pop("binary_head.bias")
        if bias:
            tensors["score.bias"] = given + 3
        for name in [name for name in tensors if name.startswith("backbone.")]:
            tensors[prefix + name.removeprefix("backbone.")] = tensors.pop(name)

    classifier = loaded(changed(folder, tmp_path / "classifier", rename))
    own_bias = float(load_file(folder / "model.safetensors")["binary_head.bias"])
    expected = reference(folder, QUERY, TEXT) + (3.0 if bias else -own_bias)
    assert classifier.score_texts(QUERY, [TEXT])[0] == pytest.approx(expected, abs=1e-4)


def test_agrees_with_transformers(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "state_size": 16,
        "head_dim": 16,
        "num_heads": 4,
    }
    vocab_size = tiny_tokenizer.get_vocab_size()
    config = transformers.Mamba2Config(
        **shape,
        vocab_size=vocab_size,
        n_groups=2,
        chunk_size=8,
        id2label={0: "relevance"},
    )
    torch.manual_seed(0)
    backbone, score = (
        transformers.Mamba2Model(config).eval(),
        torch.nn.Linear(32, 1, bias=False),
    )
    (tmp_path / "config.json").write_text(
        json.dumps(config.to_dict()), encoding="utf-8"
    )
    tiny_tokenizer.save(str(tmp_path / "tokenizer.json"))
    tensors = {
        f"backbone.{name}": tensor for name, tensor in backbone.state_dict().items()
    }
    save_file(
        tensors | {"score.weight": score.weight.detach()},
        tmp_path / "model.safetensors",
    )
    ids = tiny_tokenizer.encode(f"document: {TEXT}; query: {QUERY};<|endoftext|>").ids
    with torch.no_grad():
        expected = float(score(backbone(torch.tensor([ids])).last_hidden_state[0, -1]))
    assert loaded(tmp_path).score_texts(QUERY, [TEXT])[0] == pytest.approx(
        expected, abs=1e-4
    )


@pytest.mark.parametrize(
    ("own_head", "score", "message"),
    [
        (False, None, "neither binary_head.weight nor score.weight"),
        (False, (2, 32), r"score.weight has shape \[2, 32\]"),
        (True, (1, 32), "are both binary_head.weight"),
        (False, (1, 16), r"score.weight has shape \[1, 16\]"),
    ],
)
def test_checkpoints_that_are_no_rerankers(
    folder: Path,
    tmp_path: Path,
    own_head: bool,
    score: tuple[int, int] | None,
    message: str,
) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        if not own_head:
            del tensors["binary_head.weight"], tensors["binary_head.bias"]
        if score is not None:
            tensors["score.weight"] = torch.zeros(score)

    with pytest.raises(CheckpointError, match=message):
        loaded(changed(folder, tmp_path / "other", change))


def test_a_lexical_channel_and_a_tokenizer_that_is_too_large_are_refused(
    folder: Path, tiny_checkpoint: Path, tiny_tokenizer: Tokenizer
) -> None:
    with pytest.raises(CheckpointError, match="lexical channel, so it is a scanner"):
        loaded(tiny_checkpoint)
    larger = Tokenizer.from_str(tiny_tokenizer.to_str())
    larger.add_special_tokens([AddedToken(f"<{number}>") for number in range(200)])
    with pytest.raises(
        CheckpointError, match="expected the tokenizer that the model was trained with"
    ):
        loaded(folder, tokenizer=larger)


def test_other_end_tokens(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    other = Tokenizer.from_str(tiny_tokenizer.to_str().replace("<|endoftext|>", "</s>"))
    assert other.token_to_id("</s>") == tiny_tokenizer.token_to_id("<|endoftext|>")
    scores = [
        loaded(folder, **options).score_texts(QUERY, [TEXT])[0]
        for options in ({}, {"tokenizer": other}, {"end_token": "."})
    ]
    assert scores[0] == scores[1]
    assert scores[0] != pytest.approx(scores[2], abs=1e-3)
    with pytest.raises(ValueError, match=r"no token <\|stop\|>; pass end_token="):
        loaded(folder, end_token="<|stop|>")


def test_document_tokens_are_a_whole_number(folder: Path) -> None:
    with pytest.raises(ValueError, match="document_tokens is 0"):
        loaded(folder, document_tokens=0)
