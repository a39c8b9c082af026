"""`CheckpointError`, what is wrong with a file of a checkpoint."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from spscanner_rag.text.escaping import first_line, unbroken

# characters of a message that are kept
_MESSAGE_START = 1400
_MESSAGE_END = 600


class CheckpointError(ValueError):
    """A checkpoint cannot be found, read, verified or written.

    The message is one line of bounded length.
    """

    def __init__(self, message: str) -> None:
        message = unbroken(message)
        if len(message) > _MESSAGE_START + _MESSAGE_END:
            message = f"{message[:_MESSAGE_START]} [...] {message[-_MESSAGE_END:]}"
        super().__init__(message)


@contextmanager
def faults_of(path: Path, next_step: str = "") -> Iterator[None]:
    """Turn an error about a file's content into a `CheckpointError` that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        fault = str(error)
    except SafetensorError as error:
        fault = f"truncated, or not a safetensors file ({first_line(error)})"
    else:
        return
    raise CheckpointError(f"{path}: {fault}{next_step}")
