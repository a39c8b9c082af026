"""A BERT's forward pass, its sizes and its int8 weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.checkpoint.save import quantized
from spscanner_rag.encoder.bert import Bert, BertShape, restored
from spscanner_rag.encoder.token_encoder import TokenEncoder

WINDOWS = [[2, 5, 9, 6, 3], [2, 3], [2, *range(5, 25), 3]]


def test_states_are_those_of_transformers(
    bert_folder: Path, encoder: TokenEncoder
) -> None:
    original = transformers.BertModel.from_pretrained(bert_folder).eval()
    with torch.inference_mode():
        expected = [
            original(torch.tensor([window])).last_hidden_state[0] for window in WINDOWS
        ]
    torch.testing.assert_close(
        encoder.model.states(WINDOWS), torch.cat(expected), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("longest", [8, 9, 30])
def test_states_do_not_depend_on_the_windows_beside(
    encoder: TokenEncoder, longest: int
) -> None:
    windows = [[2, *[7] * (length - 3), 5, 3] for length in (longest, 3, 5)]
    alone = [encoder.model.states([window]) for window in windows]
    together = encoder.model.states(windows)
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=0)


def test_int8_keeps_the_direction_of_vectors() -> None:
    shape = BertShape(128, 2, 4, 256, 50, 32)
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(size, generator=generator) / 16
        for name, size in shape.tensors().items()
    }
    weights |= {
        name: torch.ones(128) for name in weights if name.endswith("LayerNorm.weight")
    }
    stored = quantized(weights)
    assert {name for name in stored if stored[name].dtype == torch.int8} == {
        name for name, size in shape.tensors().items() if len(size) == 2
    }
    states, rounded = (
        Bert(shape, own).states(WINDOWS) for own in (weights, restored(stored))
    )
    assert torch.nn.functional.cosine_similarity(states, rounded).min() > 0.999


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("model_type", "roberta", "model_type"),
        ("position_embedding_type", "relative_key", "absolute"),
        ("hidden_size", 0, "hidden_size"),
        ("num_hidden_layers", 10**9, "num_hidden_layers"),
        ("num_attention_heads", 3, "multiple"),
        ("vocab_size", "many", "vocab_size"),
        ("layer_norm_eps", None, "layer_norm_eps"),
    ],
)
def test_impossible_sizes_are_refused(
    encoder_file: EncoderFile, key: str, value: Any, match: str
) -> None:
    config = {
        "model_type": "bert",
        **{name: getattr(encoder_file.shape, name) for name in BertShape.__slots__},
    }
    assert BertShape.from_dict(config) == encoder_file.shape
    with pytest.raises(ValueError, match=match):
        BertShape.from_dict(config | {key: value})
