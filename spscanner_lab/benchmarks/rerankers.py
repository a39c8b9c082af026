"""Speed of rerankers of one size: Mamba-1, Mamba-2 and a transformer.

They have random weights and read the same tokens. The comparison is that of Xu et al.
2024 ("State Space Models are Strong Text Rerankers"). Each query ranks `--passages`
texts.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spscanner_lab.benchmarks.model_shapes import SHAPES
from spscanner_lab.benchmarks.report import Commands, median_seconds
from spscanner_lab.benchmarks.texts import QUESTION, short_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from spscanner_rag.baselines.pointwise import Pointwise

KINDS = ("Mamba-1", "Mamba-2", "transformer")
QUESTION_TOKENS = 64  # room for the question


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
    """Queries and tokens per second of each kind, without bounds.

    Its time is also in multiples of the first's.
    """
    import torch

    from spscanner_rag.checkpoint.location import locate
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer

    tokenizer = read_tokenizer(locate(None) / "tokenizer.json")
    texts = short_texts(arguments.passages, arguments.tokens)
    tokens = 0
    for text in texts:
        tokens += len(tokenizer.encode(text).ids)
        tokens += len(tokenizer.encode(QUESTION).ids)
    rerankers = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder) / kind
            rerankers[kind] = _random_reranker(kind, path, tokenizer, arguments)
    runs = {}
    for kind, reranker in rerankers.items():
        runs[kind] = partial(reranker.score_texts, QUESTION, texts)
        runs[kind]()  # compiles and tunes kernels, and takes memory
    seconds = median_seconds(runs, arguments.repeats, torch.device(arguments.device))
    rows: dict[str, object] = {
        "threads": torch.get_num_threads(),
        "tokens of a query": tokens,
    }
    for kind, duration in seconds.items():
        rows[kind] = {
            "million weights": _weights(rerankers[kind]) / 1e6,
            "queries/s": 1 / duration,
            "tokens/s": tokens / duration,
            "times the first": duration / seconds[KINDS[0]],
        }
    return rows, True


def _random_reranker(
    kind: str, folder: Path, tokenizer: Tokenizer, options: argparse.Namespace
) -> Pointwise:
    """A reranker with random weights.

    One transformer layer has as many as two Mamba layers.
    """
    import torch

    torch.manual_seed(0)
    shape = SHAPES[options.size]
    if kind == "transformer":
        return _transformer(folder, tokenizer, shape, options)
    return _mamba(kind, folder, tokenizer, shape, options)


def _mamba(
    kind: str,
    folder: Path,
    tokenizer: Tokenizer,
    shape: dict[str, int],
    options: argparse.Namespace,
) -> Pointwise:
    from spscanner_rag.baselines import MambaReranker
    from spscanner_rag.baselines.mamba1 import Mamba1Config
    from spscanner_rag.checkpoint import ScannerSettings
    from spscanner_rag.checkpoint.save import save_checkpoint
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.model import ScannerModel

    width = shape["hidden_size"]
    sizes: dict[str, Any] = {
        "d_model": width,
        "n_layer": shape["num_hidden_layers"],
        "vocab_size": shape["vocab_size"],
    }
    config: Mamba2Config
    if kind == "Mamba-2":
        config = Mamba2Config(**sizes, d_state=shape["state_size"])
    else:
        config = Mamba1Config(**sizes, dt_rank=width // 16)
    save_checkpoint(folder, ScannerModel(config), ScannerSettings(), tokenizer)
    return MambaReranker(
        folder, device=options.device, dtype=options.dtype, end_token="."
    )


def _transformer(
    folder: Path,
    tokenizer: Tokenizer,
    shape: dict[str, int],
    options: argparse.Namespace,
) -> Pointwise:
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    from spscanner_rag.baselines import CrossEncoder

    width = shape["hidden_size"]
    positions = 2 * options.tokens + QUESTION_TOKENS
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=".", model_max_length=positions
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=shape["vocab_size"],
        hidden_size=width,
        num_hidden_layers=max(1, shape["num_hidden_layers"] // 2),
        num_labels=1,
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
        max_position_embeddings=positions,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoder(folder, device=options.device, dtype=options.dtype)


def _weights(reranker: object) -> int:
    """The number of weights without the embeddings."""
    model: Any = getattr(reranker, "_model")  # noqa: B009 - nothing else needs it
    weights = 0
    for name, parameter in model.named_parameters():
        if "embedding" not in name:
            weights += parameter.numel()
    return weights
