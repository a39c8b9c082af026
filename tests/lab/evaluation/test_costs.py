"""Costs: our count of operations against PyTorch's own of a forward pass, and peak memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Dense
from spscanner_rag.lab.evaluation.costs import (
    PeakMemory,
    encoder_flops,
    flops_per_token,
    flops_per_unit,
    gigaflops_of,
    scan_flops,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.text.segmentation import SentenceSegmenter

SMALL = Mamba2Config(d_model=32, n_layer=3, vocab_size=40, d_state=16, headdim=8)
PAPER = {
    "130m": Mamba2Config(d_model=768, n_layer=24, vocab_size=50277, pad_vocab_size_multiple=16),
    "1.3b": Mamba2Config(d_model=2048, n_layer=48, vocab_size=50277, pad_vocab_size_multiple=16),
}


def counted(model: torch.nn.Module, *inputs: torch.Tensor, **options: object) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(*inputs, **options)
    return counter.get_total_flops()


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, ngroups=2, d_conv=3, expand=1),
        replace(SMALL, d_state=64, headdim=32, bias=True, rmsnorm=False),
    ],
)
def test_equals_a_forward_pass(config: Mamba2Config, chunks: int, batch: int) -> None:
    tokens = chunks * CHUNK_TOKENS
    model, input_ids = ScannerModel(config), torch.zeros(batch, tokens, dtype=torch.long)
    for units in (0, 5):
        at = (torch.zeros(units, dtype=torch.long), torch.arange(units))
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model.score(model(input_ids, at=at)[0])
        assert scan_flops(config, batch * tokens, units)[0] == counter.get_total_flops()
    # without `at` the last layer is computed in full
    head = 2 * config.d_model
    full = scan_flops(config, batch * tokens, batch * tokens)[0] - batch * tokens * head
    assert full == counted(model, input_ids)


@pytest.mark.parametrize(
    ("name", "paper", "ours", "with_head"), [("130m", 275, 203, 283), ("1.3b", 2860, 2595, 2818)]
)
def test_the_papers_table(name: str, paper: float, ours: int, with_head: int) -> None:
    config = PAPER[name]
    total = flops_per_token(config).sum()
    published = total + flops_per_unit(config).sum() + 2 * config.d_model * config.padded_vocab_size
    assert (round(total / 1e6), round(published / 1e6)) == (ours, with_head)
    assert 0.73 < total / 1e6 / paper < 0.92
    assert published / 1e6 == pytest.approx(paper, rel=0.03)


@pytest.mark.parametrize(("layers", "d_model", "feed_forward", "heads"), [(2, 16, 40, 4), (3, 24, 96, 2)])
def test_equals_a_forward_pass_of_bert(layers: int, d_model: int, feed_forward: int, heads: int) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=d_model,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=feed_forward,
        attn_implementation="eager",
    )
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    for sequences, tokens in ((1, 1), (1, 9), (3, 12)):
        found = counted(model, torch.zeros(sequences, tokens, dtype=torch.long))
        assert encoder_flops(config, [tokens] * sequences)[0] == found


TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. " * 20
UNITS = SentenceSegmenter().segment(TEXT)


def test_of_a_scan(tiny_scanner: Scanner) -> None:
    cut = tiny_scanner.reading.prepare(TEXT, UNITS)
    read = tiny_scanner.reading.pair("Which otter?", cut).sequence()
    exact = scan_flops(tiny_scanner.checkpoint.model.config, len(read.input_ids), len(UNITS)).sum() / 1e9
    assert gigaflops_of(tiny_scanner, "Which otter?", TEXT, UNITS) == pytest.approx(exact, rel=0.02)


def test_without_a_formula() -> None:
    assert gigaflops_of(BM25(), "otter", TEXT, UNITS) is None
    assert gigaflops_of(Dense(lambda texts: np.ones((len(texts), 2))), "otter", TEXT, UNITS) is None


def test_of_an_encoder(save_bert: Callable[[Path, int | None], Path], tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    dense = Dense(str(save_bert(tmp_path / "bert", None)))
    tokenizer = dense.sentence_transformer.tokenizer
    texts = ["who signed the treaty?", *dense.passages_of(TEXT, UNITS)]
    lengths = [len(tokenizer(text, truncation=True, max_length=32)["input_ids"]) for text in texts]
    expected = encoder_flops(dense.sentence_transformer[0].auto_model.config, lengths).sum() / 1e9
    assert gigaflops_of(dense, texts[0], TEXT, UNITS) == pytest.approx(expected)


def test_peak_is_that_of_what_was_done() -> None:
    before = PeakMemory().megabytes()
    if before is None:
        pytest.skip("the kernel does not tell here")
    large = PeakMemory()
    np.ones(25_000_000).sum()  # 200 MB, let go of at once
    peak = large.megabytes()
    after = PeakMemory().megabytes()
    assert peak is not None
    assert after is not None
    assert 150 < peak - before < 260
    assert after < peak - 150
