"""Hostile files: reading and cutting them costs no more than their size explains."""

import contextlib
import io
import random
import time
import tracemalloc
import zipfile

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.attack.conftest import Attempt, assert_one_line
from tests.attack.hostile_files import SHAPES, hostile_file, pdf_of_equal_pages

pytestmark = pytest.mark.timeout(120)
SIZES = pytest.mark.parametrize(
    "size", [30, pytest.param(3_000, marks=pytest.mark.slow)]
)


def cost(shape: str, size: int) -> tuple[float, float]:
    """Seconds of computing, and peak megabytes of Python objects."""
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


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The data with a few bytes changed, and stretches cut out, doubled or moved."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        start, place = rng.randrange(len(found) + 1), rng.randrange(len(found) + 1)
        stretch = found[start : start + rng.choice((1, 8, 60))]
        if rng.random() < 0.5:
            del found[start : start + len(stretch)]
        if rng.random() < 0.7:
            found[place:place] = stretch * rng.choice((1, 1, 50))
    return bytes(found)


def mutated_file(name: str, data: bytes, rng: random.Random) -> bytes:
    """A damaged file; a DOCX is damaged in one of its parts."""
    if not name.endswith(".docx"):
        return mutated(data, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(
            [part for part in old.namelist() if part.startswith("word/")]
        )
        for part in old.namelist():
            content = old.read(part)
            new.writestr(part, mutated(content, rng) if part == chosen else content)
    return made.getvalue()


@pytest.mark.parametrize("tries", [1, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SHAPES)
def test_damaged_files_are_read_or_told_in_one_line(
    shape: str, tries: int, attempt: Attempt
) -> None:
    name, data = hostile_file(shape, 12)
    for seed in range(tries):
        with attempt(f"damaged files: {shape.partition(':')[0]}"):
            try:
                found = read_bytes(
                    name, mutated_file(name, data, random.Random(f"{shape} {seed}"))
                )
            except ValueError as error:
                assert_one_line(str(error))
                continue
            end = 0
            for unit in segment_blocks(
                found.text, found.blocks, SentenceSegmenter().segment
            ):
                assert end <= unit.start < unit.end <= len(found.text)
                end = unit.end


def test_a_pdf_ends_when_its_time_ends(attempt: Attempt) -> None:
    pytest.importorskip("pypdfium2", reason="the extra files is not installed")
    with attempt("files: pdf"):
        began = time.monotonic()
        # on a slow machine no page is read in time
        with contextlib.suppress(ValueError):
            long = read_bytes("a.pdf", pdf_of_equal_pages(4_000, 2_000), seconds=1.5)
            assert long.notes[0].startswith("read ")
        assert time.monotonic() - began < 60
        assert read_bytes("a.pdf", pdf_of_equal_pages(2, 2)).text.count("Hello.") == 4
