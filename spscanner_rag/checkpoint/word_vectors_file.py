"""Read the table of word vectors of a checkpoint."""

from pathlib import Path

from safetensors.numpy import load

from spscanner_rag.checkpoint.bounded_files import LARGEST_TABLE, Check, read_bytes
from spscanner_rag.checkpoint.errors import faults_of
from spscanner_rag.lexical.word_vectors import WordVectors


def read_word_vectors(path: Path, check: Check | None = None) -> WordVectors:
    """Read a table of word vectors after its `Digests.check`.

    `CheckpointError` if it is missing or damaged.
    """
    content = read_bytes(path, LARGEST_TABLE, check)
    with faults_of(path, "; download it again"):
        try:
            return WordVectors.from_arrays(load(content))
        except KeyError as error:  # a dtype that numpy does not have
            raise ValueError(
                f"a tensor is {error.args[0]}; expected int8, uint8 and floating-point"
            ) from None
