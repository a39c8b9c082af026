"""Many documents and several threads: memory stays, and scores are the same bits."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_lab.evaluation.machine import PeakMemory
from spscanner_rag import Scanner
from tests.attack.conftest import Attempt

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUESTION = "Who left the house?"
MOST_MEGABYTES = 40.0


def document(number: int) -> str:
    return f"It rained on day {number}. The keeper of house {number} left. " * 4


@pytest.fixture
def scanner(tiny_checkpoint: Path) -> Scanner:
    return Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="float32")


def test_a_thousand_different_documents_leave_no_memory_taken(
    scanner: Scanner, attempt: Attempt
) -> None:
    for number in range(200):  # what is kept for later, and the allocator, settle
        scanner.scan(QUESTION, document(number))
    memory = PeakMemory()
    before = memory.megabytes()
    if before is None:
        pytest.skip("the system does not say how much memory a process takes")
    with attempt("growth: different documents"):
        for number in range(200, 1200):
            scanner.scan(QUESTION, document(number))
        assert (memory.megabytes() or 0.0) - before < MOST_MEGABYTES


def test_threads_get_the_same_bits(scanner: Scanner, attempt: Attempt) -> None:
    documents = [document(number) for number in range(40)]
    expected = [scanner.scan(QUESTION, text).logits for text in documents]
    differing: list[int] = []

    def work(first: int) -> None:
        for step in range(len(documents)):
            number = (first + step) % len(documents)
            logits = scanner.scan(QUESTION, documents[number]).logits
            if not np.array_equal(logits, expected[number]):
                differing.append(number)

    with attempt("growth: two threads"):
        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert differing == []


@pytest.fixture
def bundled() -> Iterator[Scanner]:
    """The default scanner in float32; afterwards torch has one thread again."""
    yield Scanner.from_pretrained(device="cpu", dtype="float32")
    torch.set_num_threads(1)


@pytest.mark.parametrize("threads", [1, 2])
def test_companions_and_threads_change_rounding_alone(
    threads: int, bundled: Scanner, attempt: Attempt
) -> None:
    texts = [document(number)[: 30 * (number + 1)] for number in range(12)]
    alone = [bundled.scan(QUESTION, text).logits for text in texts]
    torch.set_num_threads(threads)
    together = bundled.scan_many([(QUESTION, text) for text in texts])
    for text, expected, result in zip(texts, alone, together, strict=True):
        with attempt("growth: companions and threads"):
            assert np.abs(result.logits - expected).max() < 1e-5
            logits = bundled.scan(QUESTION, text).logits
            assert np.abs(logits - expected).max() < 1e-5
