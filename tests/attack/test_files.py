"""Hostile files: what reading them and cutting them costs grows with their size, and no faster."""

import contextlib
import time
import tracemalloc

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.blocks import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.attack.conftest import Attempt, assert_one_line
from tests.attack.hostile_files import SHAPES, hostile_file, pdf_of_equal_pages

pytestmark = pytest.mark.timeout(120)
SIZES = pytest.mark.parametrize("size", [30, pytest.param(3_000, marks=pytest.mark.slow)])


def cost(shape: str, size: int) -> tuple[float, float]:
    """Seconds of computing, and the most megabytes of Python's objects."""
    name, data = hostile_file(shape, size)
    tracemalloc.start()
    began = time.process_time()
    try:
        found = read_bytes(name, data)
        segment_blocks(found.text, found.blocks, SentenceSegmenter().segment)
    except ValueError as error:
        assert_one_line(str(error))
    seconds, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, most / 1e6


@SIZES
@pytest.mark.parametrize("shape", SHAPES)
def test_costs_grow_with_the_size(shape: str, size: int, attempt: Attempt) -> None:
    cost(shape, size)  # imports
    with attempt(f"files: {shape.partition(':')[0]}"):
        one, two, four = (cost(shape, size * times) for times in (1, 2, 4))
        for (seconds, megabytes), times in ((two, 2), (four, 4)):
            assert seconds < 3 * times * one[0] + 1
            assert megabytes < 1.5 * times * one[1] + 1


def test_a_pdf_ends_when_its_time_ends(attempt: Attempt) -> None:
    pytest.importorskip("pypdf", reason="the extra files is not installed")
    with attempt("files: pdf"):
        began = time.monotonic()
        with contextlib.suppress(ValueError):  # on a slow machine nothing is read
            assert "read " in read_bytes("a.pdf", pdf_of_equal_pages(4_000, 2_000), seconds=1.5).notes[-1]
        assert time.monotonic() - began < 60
        assert read_bytes("a.pdf", pdf_of_equal_pages(2, 2)).text.count("Hello.") == 4
