"""Speed of rerankers of the same size: Mamba-1, Mamba-2 and a transformer, on random weights and the same tokens.

The comparison is that of Xu et al. 2024 ("State Space Models are Strong Text
Rerankers"). Each query ranks `--passages` texts.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spscanner_lab.benchmarks.report import Commands, median_seconds
from spscanner_lab.benchmarks.speed import SHAPES
from spscanner_lab.benchmarks.texts import QUESTION, short_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from spscanner_rag.baselines.base import Pointwise

KINDS = ("Mamba-1", "Mamba-2", "transformer")
ROOM = 64  # tokens for the question


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `rerankers`."""
    command = commands.add_parser(
        "rerankers", help="Mamba-1, Mamba-2 and a transformer of one size"
    )
    add = command.add_argument
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--dtype", default="float32", choices=["float32", "bfloat16"])
    add("--size", choices=sorted(SHAPES), default="default")
    add("--passages", type=int, default=16, help="texts that a query ranks")
    add("--tokens", type=int, default=256, help="tokens in each text")
    add(
        "--repeats",
        type=int,
        default=3,
        help="measurements of each, in turn; the median counts",
    )
    command.set_defaults(measure=measure_rerankers)
    return [command]


def measure_rerankers(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Queries and tokens per second of each kind, and its time in multiples of the first's; no bounds."""
    import torch

    from spscanner_rag.checkpoint.file_access import locate
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer

    tokenizer = read_tokenizer(locate(None) / "tokenizer.json")
    texts = short_texts(arguments.passages, arguments.tokens)
    tokens = sum(
        len(tokenizer.encode(text).ids) for text in (*texts, *[QUESTION] * len(texts))
    )
    with tempfile.TemporaryDirectory() as folder:
        rerankers = {
            kind: _random_reranker(kind, Path(folder) / kind, tokenizer, arguments)
            for kind in KINDS
        }
    runs = {
        kind: partial(reranker.score_texts, QUESTION, texts)
        for kind, reranker in rerankers.items()
    }
    for run in runs.values():
        run()  # compiles and tunes kernels, and takes memory
    seconds = median_seconds(runs, arguments.repeats, torch.device(arguments.device))
    rows: dict[str, object] = {
        "threads": torch.get_num_threads(),
        "tokens of a query": tokens,
    }
    for kind, taken in seconds.items():
        rows[kind] = {
            "million weights": _weights(rerankers[kind]) / 1e6,
            "queries/s": 1 / taken,
            "tokens/s": tokens / taken,
            "times the first": taken / seconds[KINDS[0]],
        }
    return rows, True


def _random_reranker(
    kind: str, folder: Path, tokenizer: Tokenizer, given: argparse.Namespace
) -> Pointwise:
    """A reranker with random weights.

    One transformer layer has as many as two Mamba layers.
    """
    import torch

    from spscanner_rag.baselines import CrossEncoder, MambaReranker
    from spscanner_rag.baselines.rerankers import Mamba1Config
    from spscanner_rag.checkpoint import ScannerSettings
    from spscanner_rag.checkpoint.save import save_checkpoint
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.model import ScannerModel

    torch.manual_seed(0)
    shape = SHAPES[given.size]
    width, layers, vocabulary = (
        shape["hidden_size"],
        shape["num_hidden_layers"],
        shape["vocab_size"],
    )
    if kind != "transformer":
        sizes: dict[str, Any] = {
            "d_model": width,
            "n_layer": layers,
            "vocab_size": vocabulary,
        }
        own = Mamba2Config(**sizes, d_state=shape["state_size"])
        model = ScannerModel(
            own if kind == "Mamba-2" else Mamba1Config(**sizes, dt_rank=width // 16)
        )
        save_checkpoint(folder, model, ScannerSettings(), tokenizer)
        return MambaReranker(
            folder, device=given.device, dtype=given.dtype, end_token="."
        )
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    positions = 2 * given.tokens + ROOM
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=".", model_max_length=positions
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=max(1, layers // 2), num_labels=1,
        num_attention_heads=max(1, width // 64), intermediate_size=4 * width, max_position_embeddings=positions,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoder(folder, device=given.device, dtype=given.dtype)


def _weights(reranker: object) -> int:
    """The number of weights without the embeddings."""
    model = reranker._model  # type: ignore[attr-defined]
    return sum(
        p.numel() for name, p in model.named_parameters() if "embedding" not in name
    )
