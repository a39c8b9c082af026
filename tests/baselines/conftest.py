"""Small random models of the baselines, and a decomposer with scripted replies."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.baselines.baseline import Baseline
from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.proposition_replies import Source
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scorers import Cancelled

SaveBert = Callable[[Path, int | None], Path]


@pytest.fixture(scope="session")
def cross_encoder_folder(
    save_bert: SaveBert, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A small random BERT with one label."""
    return save_bert(tmp_path_factory.mktemp("models") / "cross-encoder", 1)


@pytest.fixture(scope="session")
def mamba_folder(
    tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A small random reranker in our own layout."""
    config = Mamba2Config(
        d_model=32,
        n_layer=2,
        vocab_size=tiny_tokenizer.get_vocab_size(),
        d_state=16,
        headdim=16,
        ngroups=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ScannerModel(config)
        assert model.binary_head is not None
        torch.nn.init.normal_(model.binary_head.weight)
        for layer in (
            model.backbone.layers
        ):  # a long memory matters, since the last tokens are always equal
            torch.nn.init.normal_(layer.mixer.in_proj.weight, std=0.5)
            torch.nn.init.normal_(layer.mixer.out_proj.weight)
            torch.nn.init.constant_(layer.mixer.A_log, -5.0)
    place = tmp_path_factory.mktemp("checkpoints") / "reranker"
    save_checkpoint(place, model, ScannerSettings(), tiny_tokenizer)
    return place


@pytest.fixture(scope="session")
def t5(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random T5 of one small layer, in the layout of the published checkpoint."""
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "initializer_factor": 20.0}
    return save_t5(tmp_path_factory.mktemp("models") / "t5", tiny_tokenizer, **sizes)


def save_t5(folder: Path, tokenizer: Tokenizer, **sizes: float) -> Path:
    """A random T5 with these sizes."""
    transformers = pytest.importorskip("transformers")
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.add_special_tokens(["<pad>", "</s>"])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        model_max_length=64,
    ).save_pretrained(folder)
    pad, end = map(tokenizer.token_to_id, ("<pad>", "</s>"))
    tokens = {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": pad}
    sizes |= {"vocab_size": tokenizer.get_vocab_size(), "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(**sizes, **tokens)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def letters(texts: list[str]) -> NDArray[np.float32]:
    """How often each letter occurs: an embedding that can be computed by hand."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return np.array(
        [[text.lower().count(letter) for letter in alphabet] for text in texts],
        np.float32,
    )


class SharedWords(Pointwise):
    """A text's logit is the number of words that it shares with the query, minus 2."""

    name = "shared words"

    def score_pairs(
        self, pairs: Sequence[Pair], cancelled: Cancelled
    ) -> NDArray[np.float32]:
        shared = [
            {*re.findall(r"\w+", a.lower())} & {*re.findall(r"\w+", b.lower())}
            for a, b in pairs
        ]
        return np.array([len(words) - 2 for words in shared], np.float32)


class Says:
    """A decomposer with scripted replies, which keeps the passages that it read."""

    def __init__(self, reply: Callable[[str], str] | list[str]) -> None:
        self.reply = reply
        self.read: list[Source] = []

    def __call__(self, sources: Sequence[Source]) -> Iterator[str]:
        for source in sources:
            self.read.append(source)
            yield (
                json.dumps(self.reply)
                if isinstance(self.reply, list)
                else self.reply(source.content)
            )


def propositions_by(
    model: Says, scorer: Baseline | None = None, **options: Any
) -> Propositions:
    """The baseline with a decomposer that needs no checkpoint.

    Scored by `SharedWords` by default.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "spscanner_rag.baselines.proposition_model.Seq2Seq", lambda *_, **__: model
        )
        return Propositions("model", scorer or SharedWords(), **options)
