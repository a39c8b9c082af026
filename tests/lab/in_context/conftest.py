"""A tiny random Qwen3 model with the layout of in-context retrieval."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from spscanner_lab.in_context.model import BlockSearchModel, ReadingSettings
from spscanner_lab.in_context.prompt import PromptLayout

TEXTS = [
    "The keeper signed the treaty.",
    "A heron stood in the reeds until the rain began to fall again.",
    "It rained.",
    "The captain left with three ships on 14 May.",
    "Nobody answered the letter that the council had sent.",
]
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="session")
def digit_tokenizer(tiny_tokenizer: Tokenizer) -> Tokenizer:
    made = Tokenizer.from_str(tiny_tokenizer.to_str())
    made.add_special_tokens(["<|begin|>", "<|end|>"])
    return made


def small(tokenizer: Tokenizer, **shape: Any) -> BlockSearchModel:
    """A model with random weights; the shape may include reading settings."""
    begin, end = (tokenizer.token_to_id(name) for name in ("<|begin|>", "<|end|>"))
    read = {name: shape.pop(name) for name in ("attention", "codes") if name in shape}
    shape = (
        SHAPE
        | {
            "bos_token_id": begin,
            "eos_token_id": end,
            "vocab_size": tokenizer.get_vocab_size(),
        }
        | shape
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        decoder = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**shape))
    return BlockSearchModel(
        decoder, PromptLayout.of(tokenizer, begin, end), ReadingSettings(2, **read)
    )


@pytest.fixture(scope="session")
def model(digit_tokenizer: Tokenizer) -> BlockSearchModel:
    """Weights whose attention is far from even, so that every difference shows."""
    made = small(digit_tokenizer).eval()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for parameter in made.decoder.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.3)
    return made


def with_settings(model: BlockSearchModel, **changes: Any) -> BlockSearchModel:
    """A model with the same weights and other reading settings."""
    other = BlockSearchModel(
        model.decoder, model.layout, replace(model.settings, **changes)
    )
    other.scalars = model.scalars
    return other.train(model.training)
