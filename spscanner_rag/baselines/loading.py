"""Load models of transformers and sentence-transformers, without progress bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from spscanner_rag.checkpoint.file_access import first_line
from spscanner_rag.checkpoint.hub import is_local_path, without_token
from spscanner_rag.mamba2.forks import compute_in_forks

T = TypeVar("T")


def load(from_pretrained: Callable[[str], T], name: str | Path, token: str | bool | None = None) -> T:
    """Call a loader with a local folder or a Hub id; raises ``ValueError`` if it cannot be read.

    ``token`` is the access token that the loader uses; no message includes it.
    """
    compute_in_forks()
    folder = Path(name).expanduser()
    if not folder.is_dir() and (folder.exists() or isinstance(name, Path) or is_local_path(name)):
        raise ValueError(f"{name}: no such folder; expected the folder of a model, or a Hub id")
    try:
        with _no_progress_bars():
            return from_pretrained(str(folder) if folder.is_dir() else str(name))
    except OSError as error:
        reason = without_token(first_line(error), token)
    # Raised outside the except block: the caught error may hold the request with its authorization header.
    raise ValueError(f"cannot load {name}: {reason}; pass a local folder, or go online once")


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
