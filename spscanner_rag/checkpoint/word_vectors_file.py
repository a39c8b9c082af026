"""The word vectors of a checkpoint: ``word_vectors.safetensors``, the words and their table in one file."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from safetensors import SafetensorError
from safetensors.numpy import load, save

from spscanner_rag.checkpoint.file_access import CheckpointError, first_line, read_bytes
from spscanner_rag.lexical.word_vectors import WordVectors

WORD_VECTORS: Final = "word_vectors.safetensors"

_LARGEST: Final = 2**31  # bytes: two million words of 1,024 numbers
_NEXT: Final = "download it again, or make it with `spscanner word-vectors`"


def read_word_vectors(path: Path, check: Callable[[Path, bytes], None] | None = None) -> WordVectors:
    """Read a table of word vectors; `CheckpointError`, which names the file, if it is missing or damaged.

    ``check`` is called with the path and the content before they are used; see `Digests.checking`.
    """
    content = read_bytes(path, _LARGEST)
    if check is not None:
        check(path, content)
    try:
        return WordVectors.from_arrays(load(content))
    except SafetensorError as error:
        fault = f"truncated, or not a safetensors file ({first_line(error)})"
    except KeyError as error:  # a dtype that numpy does not have
        fault = f"a tensor is {error.args[0]}; expected int8, uint8 and floating-point that numpy has"
    except ValueError as error:
        fault = str(error)
    raise CheckpointError(f"{path}: {fault}; {_NEXT}")


def write_word_vectors(path: Path, vectors: WordVectors) -> None:
    """Write a table of word vectors, with the permissions of a new file: safetensors would make it private."""
    path.write_bytes(save(vectors.to_arrays()))
