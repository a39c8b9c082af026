"""`Computing`, where and how a model computes, and what loads it to do so."""

from collections.abc import Callable
from typing import NamedTuple

from spscanner_rag.checkpoint.loaded import LoadedCheckpoint


class Computing(NamedTuple):
    """Where and how a model computes, each with the reason it was taken."""

    load: Callable[..., LoadedCheckpoint]
    """Loads a checkpoint by its name, with the options ``tokenizer`` and ``encoder``
    and those of the Hub."""

    device_reason: str
    dtype_reason: str
    backend_reason: str
